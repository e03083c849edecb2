namespace Shop.App.Commands;

internal interface ICommand
{
    string Name { get; }

    Task<int> RunAsync(Session session, IReadOnlyList<string> arguments);
}
