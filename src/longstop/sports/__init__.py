"""Sports as plug-ins: each folder knows one sport, and `base.py` says what the rest of Longstop asks of it."""
