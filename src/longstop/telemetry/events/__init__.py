"""Telemetry events, by what they are about."""
