"""Keeping live matches fresh: when to look, who looks, and what becomes of it."""
