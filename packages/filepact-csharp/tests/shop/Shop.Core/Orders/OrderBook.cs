using Shop.Storage;

namespace Shop.Orders;

public sealed class OrderBook(IStore<int, Order> store)
{
    private int last;

    public async Task<Order> BeginAsync(Currency currency, CancellationToken cancellation = default)
    {
        var order = new Order(Interlocked.Increment(ref last), currency);
        await store.SaveAsync(order.Number, order, cancellation);
        return order;
    }

    public async Task<Result<Order>> FindAsync(int number, CancellationToken cancellation = default) =>
        await store.LoadAsync(number, cancellation) is { } order
            ? Result<Order>.Of(order)
            : Result<Order>.Failed($"there is no order {number}");

    public async Task<IReadOnlyList<Order>> InStateAsync(OrderState state)
    {
        var found = new List<Order>();
        await foreach (var order in store.AllAsync())
        {
            if (order.State == state)
            {
                found.Add(order);
            }
        }

        return found;
    }
}
