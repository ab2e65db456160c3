-- Feeds: a match may be read from several sources. An event says which of them a version came from, and how the others
-- call it; keys of players and teams are mapped onto those that are stored.
-- Lists of kinds and statuses in checks become checks of shape: sports are plug-ins, and bring their own.

-- A table's checks cannot be changed: the rows are put aside, and into a new one. What refers to others goes first.
CREATE TABLE kept_matches AS SELECT * FROM matches;
CREATE TABLE kept_refs AS SELECT * FROM match_external_refs;
CREATE TABLE kept_versions AS SELECT * FROM event_versions;
CREATE TABLE kept_events AS SELECT * FROM events;
CREATE TABLE kept_snapshots AS SELECT * FROM snapshots;
CREATE TABLE kept_findings AS SELECT * FROM findings;
CREATE TABLE kept_names AS SELECT * FROM names;
CREATE TABLE kept_sequence AS SELECT seq FROM sqlite_sequence WHERE name = 'matches';
DROP TABLE events;
DROP TABLE event_versions;
DROP TABLE snapshots;
DROP TABLE findings;
DROP TABLE names;
DROP TABLE match_external_refs;
DROP TABLE matches;

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

INSERT INTO matches (
    match_id, source, source_id, phase, status, title, start_at, owner, epoch, seq, created_at, updated_at,
    completed_at, sport
)
SELECT
    match_id, source, source_id, phase, status, title, start_at, owner, epoch, seq, created_at, updated_at,
    completed_at, sport
FROM kept_matches;
-- The number that was given out last, also when its match is gone.
DELETE FROM sqlite_sequence WHERE name = 'matches';
INSERT INTO sqlite_sequence (name, seq) SELECT 'matches', seq FROM kept_sequence;
INSERT INTO match_external_refs (source, source_id, match_id) SELECT source, source_id, match_id FROM kept_refs;
INSERT INTO event_versions (
    match_id, key, rev, seq, kind, innings, over, nth, side, position, op, source_event_id, content, content_hash,
    epoch, captured_at
)
SELECT
    match_id, key, rev, seq, kind, innings, over, nth, side, position, op, source_event_id, content, content_hash,
    epoch, captured_at
FROM kept_versions;
INSERT INTO events (match_id, key, rev) SELECT match_id, key, rev FROM kept_events;
INSERT INTO snapshots (
    match_id, sequence, checksum, payload, provenance, created_at, scraper_id, update_latency_ms, data_source
)
SELECT match_id, sequence, checksum, payload, provenance, created_at, scraper_id, update_latency_ms, data_source
FROM kept_snapshots;
INSERT INTO findings (finding_id, match_id, kind, place, detail, opened_at, closed_at)
SELECT finding_id, match_id, kind, place, detail, opened_at, closed_at FROM kept_findings;
INSERT INTO names (match_id, kind, key, name) SELECT match_id, kind, key, name FROM kept_names;

DROP TABLE kept_matches;
DROP TABLE kept_refs;
DROP TABLE kept_versions;
DROP TABLE kept_events;
DROP TABLE kept_snapshots;
DROP TABLE kept_findings;
DROP TABLE kept_names;
DROP TABLE kept_sequence;
