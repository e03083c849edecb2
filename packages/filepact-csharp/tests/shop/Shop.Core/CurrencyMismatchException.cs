namespace Shop;

public sealed class CurrencyMismatchException(Currency expected, Currency actual)
    : ShopException($"expected {expected}, got {actual}")
{
    public Currency Expected { get; } = expected;

    public Currency Actual { get; } = actual;
}
