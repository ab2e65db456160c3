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
