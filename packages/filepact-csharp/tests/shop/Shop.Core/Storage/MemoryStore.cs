using System.Collections.Concurrent;
using System.Runtime.CompilerServices;

namespace Shop.Storage;

public sealed class MemoryStore<TKey, TValue> : IStore<TKey, TValue>
    where TKey : notnull
    where TValue : class
{
    private readonly ConcurrentDictionary<TKey, TValue> values = new();

    public ValueTask<TValue?> LoadAsync(TKey key, CancellationToken cancellation = default)
    {
        cancellation.ThrowIfCancellationRequested();
        return ValueTask.FromResult(values.GetValueOrDefault(key));
    }

    public ValueTask SaveAsync(TKey key, TValue value, CancellationToken cancellation = default)
    {
        cancellation.ThrowIfCancellationRequested();
        values[key] = value;
        return ValueTask.CompletedTask;
    }

    public async IAsyncEnumerable<TValue> AllAsync(
        [EnumeratorCancellation] CancellationToken cancellation = default)
    {
        foreach (var value in values.Values)
        {
            await Task.Yield();
            cancellation.ThrowIfCancellationRequested();
            yield return value;
        }
    }
}
