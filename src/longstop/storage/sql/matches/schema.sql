-- What the migrations add up to: to read, and for the test that compares the two.

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

CREATE TABLE matches (
    -- Never used again, not even after a deletion: applications keep these numbers.
    match_id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    phase TEXT NOT NULL CHECK (phase <> '' AND phase NOT GLOB '*[^a-z_]*'),
    status TEXT NOT NULL CHECK (status <> '' AND status NOT GLOB '*[^a-z_]*'),
    title TEXT NOT NULL,
    start_at TEXT,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    seq INTEGER NOT NULL DEFAULT 0 CHECK (seq >= 0),
    created_at TEXT NOT NULL,
    updated_at TEXT,
    completed_at TEXT,
    sport TEXT NOT NULL CHECK (sport <> '' AND sport NOT GLOB '*[^a-z_]*')
) STRICT;

-- The feeds of a match: how each source calls it. The one it was first seen under is also in `matches`.
CREATE TABLE match_external_refs (
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    match_id INTEGER NOT NULL REFERENCES matches (match_id),
    PRIMARY KEY (source, source_id)
) STRICT, WITHOUT ROWID;

-- One of each source: ids and keys are those of a source.
CREATE UNIQUE INDEX feeds_of_match ON match_external_refs (match_id, source);

-- Versions are only ever added.
CREATE TABLE event_versions (
    match_id INTEGER NOT NULL REFERENCES matches (match_id),
    key TEXT NOT NULL,
    rev INTEGER NOT NULL CHECK (rev >= 1),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    kind TEXT NOT NULL CHECK (kind <> '' AND kind NOT GLOB '*[^a-z_]*'),
    innings INTEGER NOT NULL,
    over INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    side TEXT NOT NULL CHECK (side NOT GLOB '*[^a-z_]*'),
    position INTEGER,
    op TEXT NOT NULL CHECK (op IN ('insert', 'update', 'void')),
    source_event_id TEXT NOT NULL,
    content TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    captured_at TEXT NOT NULL,
    -- Empty for the source that the match is named after.
    source TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (match_id, key, rev),
    UNIQUE (match_id, seq)
) STRICT, WITHOUT ROWID;

-- Which version of a key counts now.
CREATE TABLE events (
    match_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    rev INTEGER NOT NULL,
    PRIMARY KEY (match_id, key),
    FOREIGN KEY (match_id, key, rev) REFERENCES event_versions (match_id, key, rev)
) STRICT, WITHOUT ROWID;

-- How a source calls an event that came from another one.
CREATE TABLE event_ids (
    match_id INTEGER NOT NULL,
    source TEXT NOT NULL,
    key TEXT NOT NULL,
    source_event_id TEXT NOT NULL,
    PRIMARY KEY (match_id, source, key),
    FOREIGN KEY (match_id, key) REFERENCES events (match_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    match_id INTEGER NOT NULL REFERENCES matches (match_id),
    sequence INTEGER NOT NULL CHECK (sequence >= 1),
    checksum TEXT NOT NULL,
    payload BLOB NOT NULL,
    provenance TEXT NOT NULL,
    created_at TEXT NOT NULL,
    scraper_id TEXT NOT NULL,
    update_latency_ms INTEGER NOT NULL,
    data_source TEXT NOT NULL DEFAULT 'scraper' CHECK (data_source IN ('scraper', 'cache', 'manual')),
    PRIMARY KEY (match_id, sequence)
) STRICT;

CREATE TABLE findings (
    finding_id INTEGER PRIMARY KEY,
    match_id INTEGER NOT NULL REFERENCES matches (match_id),
    kind TEXT NOT NULL CHECK (kind <> '' AND kind NOT GLOB '*[^a-z_]*'),
    place TEXT NOT NULL,
    detail TEXT NOT NULL,
    opened_at TEXT NOT NULL,
    closed_at TEXT
) STRICT;

CREATE INDEX findings_of_match ON findings (match_id);

-- A question is asked once until it is answered.
CREATE UNIQUE INDEX open_findings ON findings (match_id, kind, place) WHERE closed_at IS NULL;

CREATE TABLE names (
    match_id INTEGER NOT NULL REFERENCES matches (match_id),
    kind TEXT NOT NULL CHECK (kind IN ('player', 'team')),
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (match_id, kind, key)
) STRICT, WITHOUT ROWID;

-- From a source's keys of players and teams to those stored, which are of the feed that introduced them.
CREATE TABLE match_keys (
    match_id INTEGER NOT NULL REFERENCES matches (match_id),
    source TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('player', 'team')),
    key TEXT NOT NULL,
    canonical TEXT NOT NULL,
    PRIMARY KEY (match_id, source, kind, key)
) STRICT, WITHOUT ROWID;
