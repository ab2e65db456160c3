"""A plug-in for Longstop: a sport, and a source that shows it. Read `sport.py` first, then `source.py`.

The sport says what is stored (contents and kinds), what a source has to show (views), how a poll asks for it (`read`)
and what follows from the answers (`diff`). The source says where the site keeps these things (`request`) and how to
read them (`parse`). Polling, restarts, versions, storage, API and command line are Longstop's.

The package is found through the entry points `longstop.sports` and `longstop.sources`.
"""
