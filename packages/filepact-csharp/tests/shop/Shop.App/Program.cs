using Shop;
using Shop.App;
using Shop.App.Commands;
using Shop.Catalogue;
using Shop.Orders;
using Shop.Storage;

var catalogue = SampleCatalogue.Make();
var shop = new Session(catalogue, new OrderBook(new MemoryStore<int, Order>()), Console.Out);
ICommand[] commands = [new SearchCommand(), new OrderCommand(), new ReportCommand()];

if (args is not [var name, .. var rest] || commands.FirstOrDefault(one => one.Name == name) is not { } command)
{
    Console.Error.WriteLine($"one of: {string.Join(", ", commands.Select(one => one.Name))}");
    return 2;
}

try
{
    return await command.RunAsync(shop, rest);
}
catch (ShopException problem)
{
    Console.Error.WriteLine(problem.Message);
    return 1;
}
