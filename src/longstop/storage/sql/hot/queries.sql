-- name: put_view
-- What the newest poll of a match said.
INSERT INTO views (match_id, record, sequence, checksum, captured_at, scraper_id, boot)
VALUES (:match_id, :record, :sequence, :checksum, :captured_at, :scraper_id, :boot)
ON CONFLICT (match_id) DO UPDATE
SET record = excluded.record, sequence = excluded.sequence, checksum = excluded.checksum,
    captured_at = excluded.captured_at, scraper_id = excluded.scraper_id, boot = excluded.boot;

-- name: put_payload
-- The newest payload of a match.
INSERT INTO payloads (match_id, payload) VALUES (:match_id, :payload)
ON CONFLICT (match_id) DO UPDATE SET payload = excluded.payload;

-- name: forget
-- A match that nobody watches any more.
DELETE FROM views WHERE match_id = :match_id;
DELETE FROM payloads WHERE match_id = :match_id;

-- name: keep_only
-- Every match that is not among the watched ones goes.
DELETE FROM views WHERE match_id NOT IN (SELECT value FROM json_each(:match_ids));
DELETE FROM payloads WHERE match_id NOT IN (SELECT value FROM json_each(:match_ids));

-- name: put_beat
-- A node's latest sign of life.
INSERT INTO beats (node, beat, boot) VALUES (:node, :beat, :boot)
ON CONFLICT (node) DO UPDATE SET beat = excluded.beat, boot = excluded.boot;

-- name: row
-- The live view of one match.
SELECT views.*, payloads.payload
FROM views LEFT JOIN payloads ON payloads.match_id = views.match_id
WHERE views.match_id = :match_id;

-- name: records
-- How the watching goes, in the order of the matches' ids; whoever lists them needs no payloads.
SELECT record, boot FROM views WHERE match_id BETWEEN :first AND :last ORDER BY match_id;

-- name: beats
-- Every node's latest sign of life.
SELECT beat, boot FROM beats ORDER BY node;
