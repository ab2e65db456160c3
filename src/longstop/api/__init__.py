"""How it is served: stored bytes, with their age, to those who hold a token."""
