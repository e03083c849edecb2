namespace Shop.Text;

internal static class Words
{
    private static readonly char[] Between = [' ', ',', ';', '-'];

    internal static IEnumerable<string> Of(string text)
    {
        foreach (var word in text.Split(Between, StringSplitOptions.RemoveEmptyEntries))
        {
            yield return word.ToLowerInvariant();
        }
    }
}
