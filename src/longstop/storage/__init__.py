"""Where it is kept, durable before acknowledged."""
