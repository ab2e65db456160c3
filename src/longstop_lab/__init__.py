"""The simulator, and complete runs against it with real processes: the demo and the replay of real matches.

The product never imports this package; only the command line takes verbs from it, when it is started.
"""
