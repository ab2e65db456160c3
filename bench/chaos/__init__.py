"""Suites that break things on purpose and then compare the stored events with the truth log."""
