"""Cricket."""
