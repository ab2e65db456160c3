-- name: create_migrations
-- Create the table of applied migrations.
CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

-- name: has_migrations
-- Whether the file has that table.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations';

-- name: applied_migrations
-- Applied migrations, oldest first.
SELECT number, name, checksum FROM migrations ORDER BY number;

-- name: record_migration
-- Record a migration, in the transaction that applies it.
INSERT INTO migrations (number, name, checksum) VALUES (:number, :name, :checksum);
