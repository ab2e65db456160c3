"""Whole runs against the simulator, with real processes and sockets: the demo, and the replay of real matches."""
