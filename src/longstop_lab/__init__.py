"""The simulator, and whole runs against it with real processes and sockets: the demo, and the replay of real matches.

The product never imports this package; the command line loads it for the verbs that need it.
"""
