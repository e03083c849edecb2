namespace Shop.Orders;

public sealed partial class Order
{
    public event EventHandler<OrderState>? Changed;

    public void Pay() => Go(OrderState.Paid, State is OrderState.Open && lines.Count > 0);

    public void Ship() => Go(OrderState.Shipped, State is OrderState.Paid);

    public void Cancel() => Go(OrderState.Cancelled, State is OrderState.Open or OrderState.Paid);

    private void Go(OrderState next, bool allowed)
    {
        if (!allowed)
        {
            throw new OrderStateException(Number, State, next);
        }

        State = next;
        Changed?.Invoke(this, next);
    }
}
