namespace Shop.Catalogue;

public interface ICatalogue
{
    int Count { get; }

    Article? Find(Sku sku);

    IEnumerable<Article> Search(string words);
}
