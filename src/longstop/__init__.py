"""Longstop: nothing gets past.

Reads live matches from sites that offer no API, keeps them fresh and complete, and serves them with their age.
"""

__version__ = "0.1.0"
