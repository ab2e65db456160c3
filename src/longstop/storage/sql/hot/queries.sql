-- name: put_view
-- The monitoring record of a match.
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
-- A match that is no longer polled.
DELETE FROM views WHERE match_id = :match_id;
DELETE FROM payloads WHERE match_id = :match_id;

-- name: keep_only
-- All matches except those listed.
DELETE FROM views WHERE match_id NOT IN (SELECT value FROM json_each(:match_ids));
DELETE FROM payloads WHERE match_id NOT IN (SELECT value FROM json_each(:match_ids));

-- name: put_beat
-- The latest heartbeat of a node.
INSERT INTO beats (node, beat, boot) VALUES (:node, :beat, :boot)
ON CONFLICT (node) DO UPDATE SET beat = excluded.beat, boot = excluded.boot;

-- name: row
-- The live view of one match.
SELECT views.*, payloads.payload
FROM views LEFT JOIN payloads ON payloads.match_id = views.match_id
WHERE views.match_id = :match_id;

-- name: all_rows
-- Every row, to check it.
SELECT views.*, payloads.payload FROM views LEFT JOIN payloads ON payloads.match_id = views.match_id;

-- name: records
-- Monitoring records without payloads, ordered by match id.
SELECT record, boot FROM views WHERE match_id BETWEEN :first AND :last ORDER BY match_id;

-- name: beats
-- The latest heartbeat of each node.
SELECT beat, boot FROM beats ORDER BY node;
