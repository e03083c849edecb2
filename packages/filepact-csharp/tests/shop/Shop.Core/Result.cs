using System.Diagnostics.CodeAnalysis;

namespace Shop;

/// <summary>A value, or why there is none.</summary>
public sealed class Result<T>
    where T : notnull
{
    private readonly T? value;

    private Result(T? value, string? problem)
    {
        this.value = value;
        Problem = problem;
    }

    public string? Problem { get; }

    public static Result<T> Of(T value) => new(value, null);

    public static Result<T> Failed(string problem) => new(default, problem);

    public bool TryGet([NotNullWhen(true)] out T? found)
    {
        found = value;
        return Problem is null && found is not null;
    }

    public Result<TOther> Then<TOther>(Func<T, Result<TOther>> next)
        where TOther : notnull =>
        TryGet(out var found) ? next(found) : Result<TOther>.Failed(Problem ?? "nothing");
}
