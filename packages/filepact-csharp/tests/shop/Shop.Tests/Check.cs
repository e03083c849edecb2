namespace Shop.Tests;

internal static class Check
{
    internal static void Equal<T>(T expected, T actual)
    {
        if (!EqualityComparer<T>.Default.Equals(expected, actual))
        {
            throw new CheckFailedException($"expected {expected}, got {actual}");
        }
    }

    internal static TException Throws<TException>(Action action)
        where TException : Exception
    {
        try
        {
            action();
        }
        catch (TException expected)
        {
            return expected;
        }

        throw new CheckFailedException($"no {typeof(TException).Name}");
    }
}
