namespace Shop.App.Drafts;

internal sealed class Later
{
    private string Unfinished() => 1;
}
