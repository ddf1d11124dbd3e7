"""puna: a local LLM server for any GGUF model, spoken to by every client people already use."""

__version__ = "0.1.0"
