namespace Shop.Tests;

internal sealed class MoneyTests
{
    [Fact]
    public void AmountsOfOneCurrencyAdd() =>
        Check.Equal(new Money(3m, Currency.Euro), new Money(1m, Currency.Euro) + new Money(2m, Currency.Euro));

    [Fact]
    public void AmountsOfTwoCurrenciesDoNot()
    {
        var problem = Check.Throws<CurrencyMismatchException>(
            () => _ = Money.Zero(Currency.Pound) + Money.Zero(Currency.Krone));
        Check.Equal(Currency.Pound, problem.Expected);
    }
}
