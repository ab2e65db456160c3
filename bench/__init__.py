"""Suites that measure and that break things: `scripts/bench NAME`, `scripts/chaos NAME …`. See docs/benchmarks.md."""
