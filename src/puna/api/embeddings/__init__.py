"""Texts to vectors, in OpenAI's shape and in llama.cpp's own."""
