namespace Shop.Orders;

public sealed class OrderStateException(int number, OrderState from, OrderState to)
    : ShopException($"order {number} cannot go from {from} to {to}");
