"""What is missing on this machine, and how to get it."""
