-- What people ask of the scraper, and what it answered.
CREATE TABLE commands (
    -- Never used again: an address of a command leads to that command for ever, or to nothing.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (
        kind IN ('watch', 'unwatch', 'pause_match', 'resume_match', 'pause_source', 'resume_source', 'recycle')
    ),
    argument TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    -- The machine's monotonic seconds, the same for all its processes: what a command expires by, whatever the wall
    -- clock does.
    asked_monotonic REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'taken', 'done', 'refused', 'failed', 'expired')),
    refusal TEXT CHECK (refusal IN ('not_known', 'conflict', 'memory')),
    answer TEXT,
    answered_at TEXT,
    CHECK ((state IN ('pending', 'taken')) = (answer IS NULL)),
    CHECK ((answer IS NULL) = (answered_at IS NULL)),
    CHECK ((state = 'refused') = (refusal IS NOT NULL))
) STRICT;

CREATE INDEX open_commands ON commands (state, id) WHERE state IN ('pending', 'taken');

-- What stays in force until it is taken back.
CREATE TABLE standing_orders (
    kind TEXT NOT NULL CHECK (kind IN ('unwatched', 'paused_match', 'paused_source')),
    subject TEXT NOT NULL,
    since TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    PRIMARY KEY (kind, subject)
) STRICT, WITHOUT ROWID;
