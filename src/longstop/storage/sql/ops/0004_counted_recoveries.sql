-- A recovery counts the older ones of the same that were let go.

ALTER TABLE recoveries ADD COLUMN count INTEGER NOT NULL DEFAULT 1 CHECK (count > 0);
