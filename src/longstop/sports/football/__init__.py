"""Football."""
