"""Benchmarks and chaos suites: `scripts/bench NAME`, `scripts/chaos NAME …`. See docs/benchmarks.md."""
