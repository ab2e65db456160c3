"""Retries, circuit breakers and time-outs. All of it is pure: time is passed as an argument."""
