"""OpenAI's route that makes speech into text."""
