"""Prompts on disk: files of saved state, and the tier below host memory that is made of them."""
