namespace Shop.Catalogue;

/// <summary>The short name of an article.</summary>
public readonly record struct Sku
{
    public Sku(string text)
    {
        if (!IsValid(text))
        {
            throw new ArgumentException($"not a name of an article: {text}", nameof(text));
        }

        Text = text;
    }

    public string Text { get; }

    public static bool IsValid(string? text) => text is { Length: >= 3 and <= 12 } && text.All(char.IsAsciiLetterOrDigit);

    public override string ToString() => Text;
}
