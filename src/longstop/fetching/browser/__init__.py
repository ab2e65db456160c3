"""How a request becomes a page in a real Chromium, and how nothing of it is left behind."""
