"""A site whose pages show the newest balls."""
