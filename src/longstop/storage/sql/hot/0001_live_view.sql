-- The live view: what the newest poll of each match said, and who is alive. It can be built again at any time.

CREATE TABLE views (
    match_id INTEGER PRIMARY KEY,
    record TEXT NOT NULL,
    sequence INTEGER,
    checksum TEXT,
    captured_at TEXT,
    scraper_id TEXT NOT NULL
) STRICT;

-- Apart from `views`, so that a poll without change does not write the payload again.
CREATE TABLE payloads (
    match_id INTEGER PRIMARY KEY,
    payload BLOB
) STRICT;

CREATE TABLE beats (
    node TEXT PRIMARY KEY,
    beat TEXT NOT NULL
) STRICT, WITHOUT ROWID;
