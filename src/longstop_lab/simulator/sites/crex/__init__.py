"""A site that lists every ball."""
