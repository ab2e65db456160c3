-- What the migrations add up to: to read, and for the test that compares the two.

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

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

-- One open row for each episode: a repeated error cannot fill the disk.
CREATE UNIQUE INDEX one_open_episode ON scraper_errors (ref, signature) WHERE resolved = 0;
CREATE INDEX errors_by_episode ON scraper_errors (ref, signature, resolution_time) WHERE resolved = 1;
CREATE INDEX errors_by_match ON scraper_errors (match_id);
CREATE INDEX errors_by_last_seen ON scraper_errors (resolved, last_seen);

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

CREATE INDEX health_by_scraper ON scraper_health_log (scraper_id, timestamp);
CREATE INDEX health_by_match ON scraper_health_log (match_id, timestamp);
CREATE INDEX health_by_status ON scraper_health_log (health_status, timestamp);
CREATE INDEX health_by_time ON scraper_health_log (timestamp);

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

CREATE INDEX open_commands ON commands (state, id) WHERE state IN ('pending', 'taken');

-- What stays in force until it is taken back.
CREATE TABLE standing_orders (
    kind TEXT NOT NULL CHECK (kind <> '' AND kind NOT GLOB '*[^a-z_]*'),
    subject TEXT NOT NULL,
    since TEXT NOT NULL,
    asked_by TEXT NOT NULL, checksum TEXT,
    PRIMARY KEY (kind, subject)
) STRICT, WITHOUT ROWID;

-- Pauses that a site asked for or that a breaker began: a restarted scraper keeps them.
CREATE TABLE request_pauses (
    source TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind <> '' AND kind NOT GLOB '*[^a-z_]*'),
    -- What is paused: a source, a host, a match, a resource.
    subject TEXT NOT NULL,
    until TEXT NOT NULL,
    -- The machine's monotonic seconds, and the boot that they are of; NULL where it is not known.
    until_monotonic REAL NOT NULL,
    boot TEXT,
    reason TEXT NOT NULL,
    PRIMARY KEY (source, kind, subject)
) STRICT, WITHOUT ROWID;
