"""The road of football: the same stations as cricket's, with incidents where cricket has balls. Start with `run.py`."""
