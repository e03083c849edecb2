using Shop.Catalogue;

namespace Shop.Orders;

public sealed record OrderLine(Article Article, int Quantity)
{
    public Money Total => Article.Price * Quantity;
}
