"""What to do about trouble: retries, breakers, time-outs. All of it is pure: time comes in as an argument."""
