"""Suites that measure and suites that break things; docs/explanation/benchmarks.md describes them."""
