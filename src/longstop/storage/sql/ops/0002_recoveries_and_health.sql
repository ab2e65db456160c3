-- What was done without a person, and what came of it.
CREATE TABLE recoveries (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    -- Why, in a sentence.
    trigger TEXT NOT NULL,
    -- What it was done to: a process, a node, a source.
    subject TEXT NOT NULL,
    -- The process that did it, and so the one that sees what comes of it.
    process TEXT NOT NULL,
    began_at TEXT NOT NULL,
    -- From the beginning until the outcome was seen.
    duration_seconds REAL,
    pids_before TEXT NOT NULL CHECK (json_valid(pids_before)),
    pids_after TEXT CHECK (pids_after IS NULL OR json_valid(pids_after)),
    outcome TEXT NOT NULL CHECK (outcome IN ('pending', 'recovered', 'not_recovered')),
    -- What was seen, in a sentence.
    observed TEXT,
    CHECK ((outcome = 'pending') = (observed IS NULL))
) STRICT;

CREATE INDEX recoveries_by_beginning ON recoveries (began_at);

-- How it went over time: a row for each node and minute, and one for each match whose state changed.
CREATE TABLE scraper_health_log (
    id INTEGER PRIMARY KEY,
    scraper_id TEXT NOT NULL,
    -- NULL for the node as a whole.
    match_id INTEGER,
    ref TEXT,
    timestamp TEXT NOT NULL,

    health_status TEXT NOT NULL CHECK (health_status IN ('healthy', 'degraded', 'failing', 'recovering')),
    error_count INTEGER NOT NULL,
    memory_mb REAL,
    cpu_percent REAL,

    update_latency_ms INTEGER,
    polling_interval_seconds REAL,

    uptime_seconds REAL,
    last_update_age_seconds REAL,
    CHECK ((match_id IS NULL) = (ref IS NULL))
) STRICT;

CREATE INDEX health_by_scraper ON scraper_health_log (scraper_id, timestamp);
CREATE INDEX health_by_match ON scraper_health_log (match_id, timestamp);
CREATE INDEX health_by_status ON scraper_health_log (health_status, timestamp);
CREATE INDEX health_by_time ON scraper_health_log (timestamp);
