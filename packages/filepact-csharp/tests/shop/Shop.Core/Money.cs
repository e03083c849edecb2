using System.Globalization;

namespace Shop;

/// <summary>An amount in one currency.</summary>
public readonly record struct Money(decimal Amount, Currency Currency) : IComparable<Money>
{
    public static Money Zero(Currency currency) => new(0m, currency);

    public static Money operator +(Money left, Money right) =>
        new(left.Amount + left.Same(right).Amount, left.Currency);

    public static Money operator -(Money left, Money right) =>
        new(left.Amount - left.Same(right).Amount, left.Currency);

    public static Money operator *(Money money, decimal factor) =>
        money with { Amount = decimal.Round(money.Amount * factor, 2) };

    public int CompareTo(Money other) => Amount.CompareTo(Same(other).Amount);

    public override string ToString() =>
        $"{Amount.ToString("0.00", CultureInfo.InvariantCulture)} {Currency}";

    private Money Same(Money other) =>
        other.Currency == Currency ? other : throw new CurrencyMismatchException(Currency, other.Currency);
}
