"""Checks of this machine and its settings, with advice for everything that is missing."""
