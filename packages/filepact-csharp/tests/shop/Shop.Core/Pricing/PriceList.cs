using Shop.Orders;

namespace Shop.Pricing;

public sealed class PriceList
{
#if WITH_DISCOUNTS
    private readonly List<IDiscount> discounts = [];

    public PriceList With(IDiscount discount)
    {
        discounts.Add(discount);
        return this;
    }

    public Money ToPay(Order order)
    {
        var best = discounts.Select(one => one.For(order)).DefaultIfEmpty(Money.Zero(order.Currency)).Max();
        return order.Total - best;
    }
#else
    public Money ToPay(Order order) => order.Totals;
#endif
}
