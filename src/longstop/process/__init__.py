"""Operating-system processes: reading /proc, control groups, and cleanup of orphaned processes."""
