using System.Reflection;
using Shop.Tests;

var facts =
    from type in Assembly.GetExecutingAssembly().GetTypes()
    from method in type.GetMethods()
    where method.GetCustomAttribute<FactAttribute>() is not null
    select (type, method);
foreach (var (type, method) in facts)
{
    method.Invoke(Activator.CreateInstance(type), null);
}
