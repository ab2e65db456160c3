-- Of which boot of the machine a row is: the clock that never jumps begins anew with each. NULL where nobody can tell.

ALTER TABLE views ADD COLUMN boot TEXT;

ALTER TABLE beats ADD COLUMN boot TEXT;
