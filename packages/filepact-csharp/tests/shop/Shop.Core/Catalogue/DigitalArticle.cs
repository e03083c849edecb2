namespace Shop.Catalogue;

public sealed record DigitalArticle(Sku Sku, string Name, Money Price, Uri Download)
    : Article(Sku, Name, Price)
{
    public override bool NeedsShipping => false;
}
