namespace Shop.Storage;

public interface IStore<TKey, TValue>
    where TKey : notnull
    where TValue : class
{
    ValueTask<TValue?> LoadAsync(TKey key, CancellationToken cancellation = default);

    ValueTask SaveAsync(TKey key, TValue value, CancellationToken cancellation = default);

    IAsyncEnumerable<TValue> AllAsync(CancellationToken cancellation = default);
}
