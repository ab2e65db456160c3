"""What happened, said once as data; sinks turn it into logs, metrics and rows."""
