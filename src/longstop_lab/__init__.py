"""The simulator, and complete runs against it with real processes: the demo and the replay of real matches.

The product never imports this package; the command line loads it for the verbs that need it.
"""
