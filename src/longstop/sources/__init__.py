"""What to ask a site, and how to read its answer."""
