namespace Shop.Tests;

[AttributeUsage(AttributeTargets.Method)]
internal sealed class FactAttribute : Attribute;
