"""One poll of a match, from top to bottom; `pipeline.py` is the map."""
