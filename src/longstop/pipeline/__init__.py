"""What a page becomes. Read `run.py` first."""
