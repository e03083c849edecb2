using Shop.Orders;

namespace Shop.Pricing;

public interface IDiscount
{
    string Name { get; }

    Money For(Order order);
}
