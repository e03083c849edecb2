namespace Shop;

public abstract class ShopException(string message) : Exception(message);
