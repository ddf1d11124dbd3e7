"""How a call itself is written: one file a way."""
