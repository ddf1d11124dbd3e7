"""The HTTP server: the app, what guards it, what it tells about itself, and how it runs."""
