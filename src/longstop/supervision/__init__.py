"""Keeps the processes alive: starts them, starts them again, and stops them in order."""
