"""Golden contracts: what users of Longstop depend on, recorded as files and compared by tests.

- `recorded/*.json`: the OpenAPI document, the shapes of answers, metrics, log events, settings, the command line with
  its exit codes, and the events of simulated matches after their end.
- `recorded/data_directories/NAME/`: a data directory as a former version wrote it, and `NAME.json`: every row of it and
  every answer of the API about it. It is called after the newest migration of each file.

A golden file changes only in a commit that names the requirement that demands it. Prose (descriptions, help texts,
messages) is not golden. `python -m tests.golden.record` records the files of `recorded/` again. A data directory is
never recorded again: a new version adds its own (`python -m tests.golden.make_data_directory NAME`).

Only `product.py` imports Longstop, so that one file follows when its modules move.
"""
