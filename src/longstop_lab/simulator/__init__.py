"""A simulated site: scripted matches, a truth log, and faults on tap."""
