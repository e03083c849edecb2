using Shop.Text;

namespace Shop.App.Commands;

internal sealed class SearchCommand : ICommand
{
    public string Name => "search";

    public async Task<int> RunAsync(Session session, IReadOnlyList<string> arguments)
    {
        var table = new Table("article", "name", "price");
        foreach (var article in session.Catalogue.Search(string.Join(' ', arguments)))
        {
            table.Row(article.Sku, article.Name, article.Price);
        }

        await session.Output.WriteAsync(table.ToString());
        return 0;
    }
}
