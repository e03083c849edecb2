using Shop.Catalogue;

namespace Shop.App.Commands;

internal sealed class OrderCommand : ICommand
{
    public string Name => "order";

    public async Task<int> RunAsync(Session session, IReadOnlyList<string> arguments)
    {
        var order = await session.Orders.BeginAsync(Currency.Euro);
        foreach (var (text, quantity) in arguments.Select(Parse))
        {
            var article = Sku.IsValid(text) ? session.Catalogue.Find(new Sku(text)) : null;
            if (article is null)
            {
                await session.Output.WriteLineAsync($"there is no {text}");
                return 1;
            }

            order.Add(article, quantity);
        }

        order.Pay();
        await session.Output.WriteLineAsync($"order {order.Number}: {session.Prices.ToPay(order)}");
        return 0;
    }

    private static (string Text, int Quantity) Parse(string argument) =>
        argument.Split('*') switch
        {
            [var text, var count] when int.TryParse(count, out var quantity) => (text, quantity),
            [var text] => (text, 1),
            _ => throw new FormatException(argument),
        };
}
