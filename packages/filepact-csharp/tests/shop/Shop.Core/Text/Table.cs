using System.Text;

namespace Shop.Text;

public sealed class Table(params string[] headings)
{
    private readonly List<string[]> rows = [headings];

    public Table Row(params object?[] cells)
    {
        if (cells.Length != headings.Length)
        {
            throw new ArgumentException($"{cells.Length} cells for {headings.Length} columns", nameof(cells));
        }

        rows.Add([.. cells.Select(cell => cell?.ToString() ?? "")]);
        return this;
    }

    public override string ToString()
    {
        var widths = Enumerable.Range(0, headings.Length).Select(at => rows.Max(row => row[at].Length)).ToArray();
        var text = new StringBuilder();
        foreach (var row in rows)
        {
            text.AppendLine(string.Join("  ", row.Select((cell, at) => cell.PadRight(widths[at]))).TrimEnd());
        }

        return text.ToString();
    }
}
