using Shop.Catalogue;
using Shop.Orders;
using Shop.Pricing;

namespace Shop.App;

internal sealed record Session(ICatalogue Catalogue, OrderBook Orders, TextWriter Output)
{
    public PriceList Prices { get; } = new PriceList().With(new BulkDiscount(10)).With(new PercentDiscount("loyal", 2.5m));
}
