using Shop.Catalogue;

namespace Shop.Orders;

public sealed partial class Order(int number, Currency currency)
{
    private readonly List<OrderLine> lines = [];

    public int Number { get; } = number;

    public Currency Currency { get; } = currency;

    public OrderState State { get; private set; } = OrderState.Open;

    public IReadOnlyList<OrderLine> Lines => lines;

    public Money Total => lines.Aggregate(Money.Zero(Currency), (sum, line) => sum + line.Total);

    public void Add(Article article, int quantity = 1)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(quantity, 1);
        lines.Add(new OrderLine(article, quantity));
    }
}
