-- name: create_migrations
-- Make room for the record of what has been applied.
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

-- name: has_migrations
-- Tell a file that has been migrated from one that has only just been made.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations';

-- name: applied_migrations
-- Everything applied so far, oldest first.
SELECT number, name, checksum FROM migrations ORDER BY number;

-- name: record_migration
-- Remember one as applied, in the transaction that applied it.
INSERT INTO migrations (number, name, checksum) VALUES (:number, :name, :checksum);
