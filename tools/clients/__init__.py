"""Clients that are too large for every run: how each is installed, run and judged. Start it with `python -m tools.clients`."""
