"""Mutation tests: deliberate defects of the product, each of which a named test must detect."""
