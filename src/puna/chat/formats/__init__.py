"""How model families write reasoning and calls of tools, one family a file."""
