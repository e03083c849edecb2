using Shop.Orders;
using Shop.Text;

namespace Shop.App.Commands;

internal sealed class ReportCommand : ICommand
{
    public string Name => "report";

    public async Task<int> RunAsync(Session session, IReadOnlyList<string> arguments)
    {
        var table = new Table("state", "orders");
        foreach (var state in Enum.GetValues<OrderState>())
        {
            var orders = await session.Orders.InStateAsync(state);
            table.Row(state, orders.Count);
        }

        await session.Output.WriteAsync(table.ToString());
        return 0;
    }
}
