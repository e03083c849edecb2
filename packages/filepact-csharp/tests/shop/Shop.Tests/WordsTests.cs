using Shop.Text;

namespace Shop.Tests;

internal sealed class WordsTests
{
    [Fact]
    public void WordsAreLowerCase() => Check.Equal("green tea", string.Join(' ', Words.Of("Green-TEA")));
}
