-- What the migrations add up to: to read, and for the test that compares the two.

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

CREATE TABLE views (
    match_id INTEGER PRIMARY KEY,
    record TEXT NOT NULL,
    sequence INTEGER,
    checksum TEXT,
    captured_at TEXT,
    scraper_id TEXT NOT NULL
, boot TEXT) STRICT;

CREATE TABLE payloads (
    match_id INTEGER PRIMARY KEY,
    payload BLOB
) STRICT;

CREATE TABLE beats (
    node TEXT PRIMARY KEY,
    beat TEXT NOT NULL
, boot TEXT) STRICT, WITHOUT ROWID;
