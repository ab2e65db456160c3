"""The stores on SQLite."""
