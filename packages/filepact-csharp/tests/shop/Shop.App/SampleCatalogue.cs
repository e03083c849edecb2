using Shop.Catalogue;

namespace Shop.App;

internal static class SampleCatalogue
{
    internal static ICatalogue Make()
    {
        var made = new MemoryCatalogue();
        made.Add(new Article(new Sku("TEA01"), "green tea", new Money(4.50m, Currency.Euro)) { Tags = ["drink"] });
        made.Add(new Article(new Sku("CUP01"), "tea cup", new Money(7.00m, Currency.Euro)));
        made.Add(
            new DigitalArticle(
                new Sku("MAP01"),
                "map of gardens",
                new Money(3.20m, Currency.Euro),
                new Uri("https://shop.invalid/maps/1")));
        return made;
    }
}
