-- name: match_of_ref
-- The match with this id at a source.
SELECT matches.*
FROM match_external_refs AS refs
JOIN matches ON matches.match_id = refs.match_id
WHERE refs.source = :source AND refs.source_id = :source_id;

-- name: match
-- One match.
SELECT * FROM matches WHERE match_id = :match_id;

-- name: matches
-- A page of matches, ordered by id; a filter that is NULL selects all.
SELECT * FROM matches
WHERE match_id > :after_id
    AND (:status IS NULL OR status = :status)
    AND (:phase IS NULL OR phase = :phase)
    AND (:source IS NULL OR source = :source)
    AND (:sport IS NULL OR sport = :sport)
ORDER BY match_id
LIMIT :limit;

-- name: unfinished
-- The feeds of every match that is not archived; a restarted node continues them.
SELECT match_id, refs.source, refs.source_id
FROM match_external_refs AS refs JOIN matches USING (match_id)
WHERE matches.phase <> 'archived'
ORDER BY match_id, refs.source, refs.source_id;

-- name: add_match
-- A new match.
INSERT INTO matches (source, source_id, phase, status, title, start_at, created_at, sport)
VALUES (:source, :source_id, :phase, :status, :title, :start_at, :created_at, :sport)
RETURNING *;

-- name: add_ref
-- The id of a match at a source.
INSERT INTO match_external_refs (source, source_id, match_id) VALUES (:source, :source_id, :match_id);

-- name: feeds
-- The ids of a match at its sources.
SELECT source, source_id FROM match_external_refs WHERE match_id = :match_id ORDER BY source, source_id;

-- name: event_ids
-- The sources' ids of events that another source introduced.
SELECT source, key, source_event_id FROM event_ids WHERE match_id = :match_id;

-- name: learn_event_id
-- A new id replaces the old one: a source may change it.
INSERT INTO event_ids (match_id, source, key, source_event_id) VALUES (:match_id, :source, :key, :source_event_id)
ON CONFLICT (match_id, source, key) DO UPDATE SET source_event_id = excluded.source_event_id
WHERE excluded.source_event_id <> event_ids.source_event_id;

-- name: match_keys
-- The sources' keys of players and teams, and the stored keys they map to.
SELECT source, kind, key, canonical FROM match_keys WHERE match_id = :match_id;

-- name: learn_key
-- The stored key of a source's key; it never changes.
INSERT INTO match_keys (match_id, source, kind, key, canonical) VALUES (:match_id, :source, :kind, :key, :canonical)
ON CONFLICT (match_id, source, kind, key) DO NOTHING;

-- name: claim
-- Set the owner and increment the epoch; updates with an older epoch are rejected.
UPDATE matches SET owner = :owner, epoch = epoch + 1 WHERE match_id = :match_id RETURNING *;

-- name: save_match
-- The match after an update.
UPDATE matches
SET phase = :phase, status = :status, title = :title, start_at = :start_at, seq = :seq,
    updated_at = :updated_at, completed_at = :completed_at
WHERE match_id = :match_id
RETURNING *;

-- name: version
-- One version of one event.
SELECT * FROM event_versions WHERE match_id = :match_id AND key = :key AND rev = :rev;

-- name: current_rev
-- The current revision of an event.
SELECT rev FROM events WHERE match_id = :match_id AND key = :key;

-- name: add_version
-- Versions are added, never changed.
INSERT INTO event_versions (
    match_id, key, rev, seq, kind, innings, over, nth, side, position, op, source_event_id, content, content_hash,
    epoch, captured_at, source
)
VALUES (
    :match_id, :key, :rev, :seq, :kind, :innings, :over, :nth, :side, :position, :op, :source_event_id, :content,
    :content_hash, :epoch, :captured_at, :source
);

-- name: move_event
-- Make a newer version the current one; never an older one.
INSERT INTO events (match_id, key, rev) VALUES (:match_id, :key, :rev)
ON CONFLICT (match_id, key) DO UPDATE SET rev = excluded.rev WHERE excluded.rev > events.rev;

-- name: events_after
-- A page of versions, ordered by sequence number.
SELECT versions.*, matches.sport
FROM event_versions AS versions
JOIN matches ON matches.match_id = versions.match_id
WHERE versions.match_id = :match_id AND versions.seq > :seq
ORDER BY versions.seq
LIMIT :limit;

-- name: current_events
-- The current version of every key, including void ones, ordered by key.
SELECT versions.*, matches.sport
FROM events
JOIN event_versions AS versions
    ON versions.match_id = events.match_id AND versions.key = events.key AND versions.rev = events.rev
JOIN matches ON matches.match_id = events.match_id
WHERE events.match_id = :match_id
ORDER BY versions.kind, versions.innings, versions.over, versions.side, versions.nth,
    versions.key;

-- name: current_events_after
-- A page of the current versions, including void ones, ordered by sequence number.
SELECT versions.*, matches.sport
FROM event_versions AS versions
JOIN events
    ON events.match_id = versions.match_id AND events.key = versions.key AND events.rev = versions.rev
JOIN matches ON matches.match_id = versions.match_id
WHERE versions.match_id = :match_id AND versions.seq > :seq
ORDER BY versions.seq
LIMIT :limit;

-- name: snapshots
-- The stored snapshots, newest first.
SELECT * FROM snapshots WHERE match_id = :match_id ORDER BY sequence DESC LIMIT :limit;

-- name: snapshot_bytes
-- The size of all payloads. SQLite knows that of a BLOB without reading its pages.
SELECT coalesce(sum(length(payload)), 0) AS number FROM snapshots WHERE match_id = :match_id;

-- name: newest_snapshot
-- The newest snapshot.
SELECT * FROM snapshots WHERE match_id = :match_id ORDER BY sequence DESC LIMIT 1;

-- name: add_snapshot
-- A new snapshot.
INSERT INTO snapshots (
    match_id, sequence, checksum, payload, provenance, created_at, scraper_id, update_latency_ms
)
VALUES (
    :match_id, :sequence, :checksum, :payload, :provenance, :created_at, :scraper_id, :update_latency_ms
)
RETURNING *;

-- name: prune_snapshots
-- Sequence numbers have no gaps, so the newest ones are those above a number.
DELETE FROM snapshots WHERE match_id = :match_id AND sequence <= :sequence - :kept;

-- name: findings
-- Open findings first, then the most recently closed.
SELECT * FROM findings
WHERE match_id = :match_id
ORDER BY closed_at IS NOT NULL, closed_at DESC, finding_id
LIMIT :limit;

-- name: count_findings
-- How many there are.
SELECT count(*) AS number FROM findings WHERE match_id = :match_id;

-- name: count_open_findings
-- How many are open.
SELECT count(*) AS number FROM findings WHERE match_id = :match_id AND closed_at IS NULL;

-- name: open_findings
-- Open findings, oldest first.
SELECT * FROM findings WHERE match_id = :match_id AND closed_at IS NULL ORDER BY finding_id;

-- name: with_open_findings
-- The matches in a range of ids that have open findings.
SELECT DISTINCT match_id FROM findings WHERE closed_at IS NULL AND match_id BETWEEN :first_id AND :last_id;

-- name: open_finding
-- Open a finding; one that is already open only gets the new detail.
INSERT INTO findings (match_id, kind, place, detail, opened_at)
VALUES (:match_id, :kind, :place, :detail, :opened_at)
ON CONFLICT (match_id, kind, place) WHERE closed_at IS NULL
DO UPDATE SET detail = excluded.detail WHERE excluded.detail <> findings.detail;

-- name: close_finding
-- Close a finding.
UPDATE findings SET closed_at = :closed_at WHERE finding_id = :finding_id;

-- name: names
-- Names of players and teams by key.
SELECT kind, key, name FROM names WHERE match_id = :match_id ORDER BY kind, key;

-- name: learn_name
-- Add or replace a name.
INSERT INTO names (match_id, kind, key, name) VALUES (:match_id, :kind, :key, :name)
ON CONFLICT (match_id, kind, key) DO UPDATE SET name = excluded.name WHERE excluded.name <> names.name;

-- name: begin_generation
-- Raise epochs and sequence numbers of a restored store above all that were used after its backup.
UPDATE matches SET epoch = epoch + :step, seq = seq + :step;
