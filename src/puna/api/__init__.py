"""Wire formats, a folder a dialect; what they share lies beside them. Dialects never import each other."""
