using Shop.Orders;

namespace Shop.Pricing;

/// <summary>Every so many of the same article, one is free.</summary>
public sealed class BulkDiscount(int every) : IDiscount
{
    public string Name => $"every {every}th is free";

    public Money For(Order order)
    {
        var sum = Money.Zero(order.Currency);
        foreach (var (article, quantity) in order.Lines)
        {
            sum += article.Price * (quantity / every);
        }

        return sum;
    }
}
