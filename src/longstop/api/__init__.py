"""The HTTP API. It serves what the store and the live view hold, and never scrapes."""
