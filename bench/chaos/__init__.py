"""Suites that break things on purpose and then ask an independent judge what is left."""
