using Shop.Orders;

namespace Shop.Pricing;

public sealed class PercentDiscount(string name, decimal percent) : IDiscount
{
    public string Name => name;

    public Money For(Order order) => order.Total * (percent / 100m);
}
