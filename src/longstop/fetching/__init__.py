"""How a request becomes a page."""
