"""One file a family: a sample of its output, and its description."""
