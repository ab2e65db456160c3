"""The sites, each in its real wire shape."""
