"""OpenAI's completions, chat completions and models."""
