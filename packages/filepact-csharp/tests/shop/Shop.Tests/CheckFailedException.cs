namespace Shop.Tests;

internal sealed class CheckFailedException(string message) : Exception(message);
