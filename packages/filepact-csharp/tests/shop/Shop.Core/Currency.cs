namespace Shop;

public enum Currency
{
    Euro,
    Pound,
    Krone,
}
