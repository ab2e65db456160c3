"""Simulated football matches: how they are played, what a site publishes of them, and what is true in the end."""
