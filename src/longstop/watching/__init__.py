"""Scheduling: when to poll, what to restart, and what an operator commanded."""
