-- Football: which sport a match is of, its kinds of event, and the side of a key.

ALTER TABLE matches ADD COLUMN sport TEXT NOT NULL DEFAULT 'cricket' CHECK (sport IN ('cricket', 'football'));

-- A table's checks cannot be changed: its rows are put aside, and into a new one. What refers to them goes first.
CREATE TABLE kept_versions AS SELECT * FROM event_versions;
CREATE TABLE kept_events AS SELECT * FROM events;
DROP TABLE events;
DROP TABLE event_versions;

-- Versions are only ever added.
CREATE TABLE event_versions (
    match_id INTEGER NOT NULL REFERENCES matches (match_id),
    key TEXT NOT NULL,
    rev INTEGER NOT NULL CHECK (rev >= 1),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    kind TEXT NOT NULL CHECK (
        kind IN (
            'delivery', 'inferred', 'over', 'innings', 'result',
            'goal', 'card', 'substitution', 'var', 'missed_penalty', 'period', 'kick'
        )
    ),
    innings INTEGER NOT NULL,
    over INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    side TEXT NOT NULL CHECK (side IN ('', 'home', 'away')),
    position INTEGER,
    op TEXT NOT NULL CHECK (op IN ('insert', 'update', 'void')),
    source_event_id TEXT NOT NULL,
    content TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    captured_at TEXT NOT NULL,
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

INSERT INTO event_versions (
    match_id, key, rev, seq, kind, innings, over, nth, side, position, op, source_event_id, content, content_hash,
    epoch, captured_at
)
SELECT
    match_id, key, rev, seq, kind, innings, over, nth, '', position, op, source_event_id, content, content_hash,
    epoch, captured_at
FROM kept_versions;
INSERT INTO events (match_id, key, rev) SELECT match_id, key, rev FROM kept_events;
DROP TABLE kept_events;
DROP TABLE kept_versions;
