-- Lists of kinds, states and outcomes in checks become checks of shape, so that a new one needs no new table. Pairs of
-- columns that belong together are checked as before.

-- A table's checks cannot be changed: the rows move into a new one. Indexes keep their names until the old one is gone.
ALTER TABLE scraper_errors RENAME TO kept_errors;
ALTER TABLE recoveries RENAME TO kept_recoveries;
ALTER TABLE scraper_health_log RENAME TO kept_health;
ALTER TABLE commands RENAME TO kept_commands;
ALTER TABLE standing_orders RENAME TO kept_orders;

-- What went wrong, one row for each episode: the same error of the same subject, until it is resolved.
CREATE TABLE scraper_errors (
    id INTEGER PRIMARY KEY,
    scraper_id TEXT NOT NULL,
    match_id INTEGER,
    -- The first of the episode.
    timestamp TEXT NOT NULL,

    error_type TEXT NOT NULL CHECK (error_type <> '' AND error_type NOT GLOB '*[^a-z_]*'),
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
    resolution_method TEXT CHECK (resolution_method <> '' AND resolution_method NOT GLOB '*[^a-z_]*'),
    CHECK ((resolved = 1) = (resolution_time IS NOT NULL)),
    CHECK ((resolved = 1) = (resolution_method IS NOT NULL))
) STRICT;

-- What was done without a person, and what came of it. Rows are in the order of their writing.
CREATE TABLE recoveries (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind <> '' AND kind NOT GLOB '*[^a-z_]*'),
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
    outcome TEXT NOT NULL CHECK (outcome <> '' AND outcome NOT GLOB '*[^a-z_]*'),
    -- What was seen, in a sentence.
    observed TEXT,
    -- This one, and older ones of the same kind and subject that are no longer kept.
    count INTEGER NOT NULL DEFAULT 1 CHECK (count > 0),
    CHECK ((outcome = 'pending') = (observed IS NULL))
) STRICT;

-- How it went over time: a row for each node and minute, and one for each match whose state changed.
CREATE TABLE scraper_health_log (
    id INTEGER PRIMARY KEY,
    scraper_id TEXT NOT NULL,
    -- NULL for the node as a whole.
    match_id INTEGER,
    ref TEXT,
    timestamp TEXT NOT NULL,

    health_status TEXT NOT NULL CHECK (health_status <> '' AND health_status NOT GLOB '*[^a-z_]*'),
    error_count INTEGER NOT NULL,
    memory_mb REAL,
    cpu_percent REAL,

    update_latency_ms INTEGER,
    polling_interval_seconds REAL,

    uptime_seconds REAL,
    last_update_age_seconds REAL,
    CHECK ((match_id IS NULL) = (ref IS NULL))
) STRICT;

-- What people ask of the scraper, and what it answered.
CREATE TABLE commands (
    -- Never used again: an address of a command leads to that command for ever, or to nothing.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind <> '' AND kind NOT GLOB '*[^a-z_]*'),
    argument TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    -- The machine's monotonic seconds, the same for all its processes.
    asked_monotonic REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state <> '' AND state NOT GLOB '*[^a-z_]*'),
    refusal TEXT CHECK (refusal <> '' AND refusal NOT GLOB '*[^a-z_]*'),
    answer TEXT,
    answered_at TEXT,
    -- The boot of the machine that the monotonic seconds are of; NULL where it is not known.
    boot TEXT,
    CHECK ((state IN ('pending', 'taken')) = (answer IS NULL)),
    CHECK ((answer IS NULL) = (answered_at IS NULL)),
    CHECK ((state = 'refused') = (refusal IS NOT NULL))
) STRICT;

-- What stays in force until it is taken back.
CREATE TABLE standing_orders (
    kind TEXT NOT NULL CHECK (kind <> '' AND kind NOT GLOB '*[^a-z_]*'),
    subject TEXT NOT NULL,
    since TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
) STRICT, WITHOUT ROWID;

INSERT INTO scraper_errors (
    id, scraper_id, match_id, timestamp, error_type, error_class, error_message, stack_trace, signature, source, ref,
    url, operation, retry_attempt, snapshot, count, last_seen, resolved, resolution_time, resolution_method
)
SELECT
    id, scraper_id, match_id, timestamp, error_type, error_class, error_message, stack_trace, signature, source, ref,
    url, operation, retry_attempt, snapshot, count, last_seen, resolved, resolution_time, resolution_method
FROM kept_errors;
INSERT INTO recoveries (
    rowid, id, kind, trigger, subject, process, began_at, duration_seconds, pids_before, pids_after, outcome, observed,
    count
)
SELECT
    rowid, id, kind, trigger, subject, process, began_at, duration_seconds, pids_before, pids_after, outcome, observed,
    count
FROM kept_recoveries;
INSERT INTO scraper_health_log (
    id, scraper_id, match_id, ref, timestamp, health_status, error_count, memory_mb, cpu_percent, update_latency_ms,
    polling_interval_seconds, uptime_seconds, last_update_age_seconds
)
SELECT
    id, scraper_id, match_id, ref, timestamp, health_status, error_count, memory_mb, cpu_percent, update_latency_ms,
    polling_interval_seconds, uptime_seconds, last_update_age_seconds
FROM kept_health;
INSERT INTO commands (
    id, kind, argument, asked_by, asked_at, asked_monotonic, state, refusal, answer, answered_at, boot
)
SELECT id, kind, argument, asked_by, asked_at, asked_monotonic, state, refusal, answer, answered_at, boot
FROM kept_commands;
-- The number that was given out last, also when its command is gone.
DELETE FROM sqlite_sequence WHERE name = 'commands';
INSERT INTO sqlite_sequence (name, seq) SELECT 'commands', seq FROM sqlite_sequence WHERE name = 'kept_commands';
INSERT INTO standing_orders (kind, subject, since, asked_by) SELECT kind, subject, since, asked_by FROM kept_orders;

DROP TABLE kept_errors;
DROP TABLE kept_recoveries;
DROP TABLE kept_health;
DROP TABLE kept_commands;
DROP TABLE kept_orders;

-- One open row for each episode: a repeated error cannot fill the disk.
CREATE UNIQUE INDEX one_open_episode ON scraper_errors (ref, signature) WHERE resolved = 0;
CREATE INDEX errors_by_episode ON scraper_errors (ref, signature, resolution_time) WHERE resolved = 1;
CREATE INDEX errors_by_match ON scraper_errors (match_id);
CREATE INDEX errors_by_last_seen ON scraper_errors (resolved, last_seen);
CREATE INDEX health_by_scraper ON scraper_health_log (scraper_id, timestamp);
CREATE INDEX health_by_match ON scraper_health_log (match_id, timestamp);
CREATE INDEX health_by_status ON scraper_health_log (health_status, timestamp);
CREATE INDEX health_by_time ON scraper_health_log (timestamp);
CREATE INDEX open_commands ON commands (state, id) WHERE state IN ('pending', 'taken');
