using Shop.Orders;

namespace Shop.Tests;

internal sealed class OrderTests
{
    private static readonly Article Tea = new(new Sku("TEA01"), "tea", new Money(2m, Currency.Euro));

    [Fact]
    public void AnEmptyOrderIsNotPaid() =>
        Check.Throws<OrderStateException>(() => new Order(1, Currency.Euro).Pay());

    [Fact]
    public void APaidOrderIsShipped()
    {
        var order = new Order(1, Currency.Euro);
        var seen = new List<OrderState>();
        order.Changed += (_, state) => seen.Add(state);
        order.Add(Tea, 3);
        order.Pay();
        order.Ship();
        Check.Equal(6m, order.Total.Amount);
        Check.Equal("Paid Shipped", string.Join(' ', seen));
    }
}
