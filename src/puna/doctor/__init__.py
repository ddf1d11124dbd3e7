"""Finds out what is wrong with an installation: facts are gathered, then judged by pure functions."""
