"""Which paths need no key."""

PUBLIC = frozenset({"/", "/health", "/v1/health", "/v1/models", "/models"})
"""To be read by anybody; every other path, existing or not, needs a key where keys are configured."""
