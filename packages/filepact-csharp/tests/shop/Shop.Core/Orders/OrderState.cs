namespace Shop.Orders;

public enum OrderState
{
    Open,
    Paid,
    Shipped,
    Cancelled,
}
