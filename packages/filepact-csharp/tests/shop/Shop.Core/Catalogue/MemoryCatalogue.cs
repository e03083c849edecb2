using Shop.Text;

namespace Shop.Catalogue;

public sealed class MemoryCatalogue : ICatalogue
{
    private readonly Dictionary<Sku, Article> articles = [];

    public int Count => articles.Count;

    public Article? Find(Sku sku) => articles.GetValueOrDefault(sku);

    public void Add(Article article) => articles[article.Sku] = article;

    public IEnumerable<Article> Search(string words)
    {
        var wanted = Words.Of(words).ToHashSet();
        return
            from article in articles.Values
            let own = Words.Of(article.Name).Concat(article.Tags)
            where own.Any(wanted.Contains)
            orderby article.Name
            select article;
    }
}
