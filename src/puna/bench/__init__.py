"""Measures OpenAI-compatible servers side by side. The load tool must be cheap: it often shares the servers' cores."""
