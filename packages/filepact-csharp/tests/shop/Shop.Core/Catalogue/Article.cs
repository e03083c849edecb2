namespace Shop.Catalogue;

public record Article(Sku Sku, string Name, Money Price)
{
    public string? Description { get; init; }

    public IReadOnlyList<string> Tags { get; init; } = [];

    public virtual bool NeedsShipping => true;
}
