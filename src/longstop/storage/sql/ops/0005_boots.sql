-- Of which boot of the machine a command is: the clock that it expires by begins anew with each. NULL where nobody can
-- tell.

ALTER TABLE commands ADD COLUMN boot TEXT;

-- The audit is in the order of its writing.
DROP INDEX recoveries_by_beginning;
