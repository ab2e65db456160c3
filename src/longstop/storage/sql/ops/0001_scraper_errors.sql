-- What went wrong, one row for each episode: the same error of the same subject, until it is resolved.

CREATE TABLE scraper_errors (
    id INTEGER PRIMARY KEY,
    scraper_id TEXT NOT NULL,
    match_id INTEGER,
    -- The first of the episode.
    timestamp TEXT NOT NULL,

    error_type TEXT NOT NULL
        CHECK (error_type IN ('network', 'auth', 'parsing', 'not_found', 'browser', 'database', 'internal')),
    error_class TEXT NOT NULL,
    error_message TEXT NOT NULL,
    stack_trace TEXT,
    -- The same for the same error of any match of a source.
    signature TEXT NOT NULL,

    source TEXT NOT NULL,
    -- What the episode is about: a match as its source calls it, else the source, else the task.
    ref TEXT NOT NULL,
    url TEXT,
    operation TEXT NOT NULL,
    retry_attempt INTEGER NOT NULL DEFAULT 0,
    -- Where the page of the first is kept, below the data directory.
    snapshot TEXT,
    count INTEGER NOT NULL DEFAULT 1 CHECK (count > 0),
    last_seen TEXT NOT NULL,

    resolved INTEGER NOT NULL DEFAULT 0 CHECK (resolved IN (0, 1)),
    resolution_time TEXT,
    resolution_method TEXT
        CHECK (resolution_method IN ('auto_retry', 'circuit_breaker', 'restart', 'manual')),
    CHECK ((resolved = 1) = (resolution_time IS NOT NULL)),
    CHECK ((resolved = 1) = (resolution_method IS NOT NULL))
) STRICT;

-- The heart of the table: no error fills a disk by being repeated.
CREATE UNIQUE INDEX one_open_episode ON scraper_errors (ref, signature) WHERE resolved = 0;
CREATE INDEX errors_by_episode ON scraper_errors (ref, signature, resolution_time) WHERE resolved = 1;
CREATE INDEX errors_by_match ON scraper_errors (match_id);
CREATE INDEX errors_by_last_seen ON scraper_errors (resolved, last_seen);
