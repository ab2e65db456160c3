-- name: match_of_ref
-- The match that a source calls by this id.
SELECT matches.*
FROM match_external_refs AS refs
JOIN matches ON matches.match_id = refs.match_id
WHERE refs.source = :source AND refs.source_id = :source_id;

-- name: match
-- One match.
SELECT * FROM matches WHERE match_id = :match_id;

-- name: matches
-- A page of matches in the order of their ids; a filter that is null lets everything through.
SELECT * FROM matches
WHERE match_id > :after_id
    AND (:status IS NULL OR status = :status)
    AND (:phase IS NULL OR phase = :phase)
    AND (:source IS NULL OR source = :source)
    AND (:sport IS NULL OR sport = :sport)
ORDER BY match_id
LIMIT :limit;

-- name: unfinished
-- What a restarted node goes on with.
SELECT * FROM matches WHERE phase <> 'archived' ORDER BY match_id;

-- name: add_match
-- A match seen for the first time.
INSERT INTO matches (source, source_id, phase, status, title, start_at, created_at, sport)
VALUES (:source, :source_id, :phase, :status, :title, :start_at, :created_at, :sport)
RETURNING *;

-- name: add_ref
-- How a source calls it.
INSERT INTO match_external_refs (source, source_id, match_id) VALUES (:source, :source_id, :match_id);

-- name: feeds
-- How the sources call a match.
SELECT source, source_id FROM match_external_refs WHERE match_id = :match_id ORDER BY source, source_id;

-- name: event_ids
-- How sources call events that came from another one.
SELECT source, key, source_event_id FROM event_ids WHERE match_id = :match_id;

-- name: learn_event_id
-- An id, or the new one that the source has given it.
INSERT INTO event_ids (match_id, source, key, source_event_id) VALUES (:match_id, :source, :key, :source_event_id)
ON CONFLICT (match_id, source, key) DO UPDATE SET source_event_id = excluded.source_event_id
WHERE excluded.source_event_id <> event_ids.source_event_id;

-- name: match_keys
-- From the sources' keys of players and teams to those stored.
SELECT source, kind, key, canonical FROM match_keys WHERE match_id = :match_id;

-- name: learn_key
-- What a source's key stands for; that never changes.
INSERT INTO match_keys (match_id, source, kind, key, canonical) VALUES (:match_id, :source, :kind, :key, :canonical)
ON CONFLICT (match_id, source, kind, key) DO NOTHING;

-- name: claim
-- A new owner, a new epoch: whoever still writes with the old one is refused from now on.
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
-- The revision that counts now.
SELECT rev FROM events WHERE match_id = :match_id AND key = :key;

-- name: add_version
-- Versions are only ever added.
INSERT INTO event_versions (
    match_id, key, rev, seq, kind, innings, over, nth, side, position, op, source_event_id, content, content_hash,
    epoch, captured_at, source
)
VALUES (
    :match_id, :key, :rev, :seq, :kind, :innings, :over, :nth, :side, :position, :op, :source_event_id, :content,
    :content_hash, :epoch, :captured_at, :source
);

-- name: move_event
-- Let a newer version count; never an older one.
INSERT INTO events (match_id, key, rev) VALUES (:match_id, :key, :rev)
ON CONFLICT (match_id, key) DO UPDATE SET rev = excluded.rev WHERE excluded.rev > events.rev;

-- name: events_after
-- A page of versions in the order they were stored.
SELECT versions.*, matches.sport
FROM event_versions AS versions
JOIN matches ON matches.match_id = versions.match_id
WHERE versions.match_id = :match_id AND versions.seq > :seq
ORDER BY versions.seq
LIMIT :limit;

-- name: current_events
-- The version that counts of every key, void ones included, in the order of the keys.
SELECT versions.*, matches.sport
FROM events
JOIN event_versions AS versions
    ON versions.match_id = events.match_id AND versions.key = events.key AND versions.rev = events.rev
JOIN matches ON matches.match_id = events.match_id
WHERE events.match_id = :match_id
ORDER BY versions.kind, versions.innings, versions.over, versions.side, versions.nth,
    versions.key;

-- name: snapshots
-- All that are kept, the newest first.
SELECT * FROM snapshots WHERE match_id = :match_id ORDER BY sequence DESC;

-- name: newest_snapshot
-- The one that the next payload is compared with.
SELECT * FROM snapshots WHERE match_id = :match_id ORDER BY sequence DESC LIMIT 1;

-- name: add_snapshot
-- A new whole of the match.
INSERT INTO snapshots (
    match_id, sequence, checksum, payload, provenance, created_at, scraper_id, update_latency_ms
)
VALUES (
    :match_id, :sequence, :checksum, :payload, :provenance, :created_at, :scraper_id, :update_latency_ms
)
RETURNING *;

-- name: prune_snapshots
-- Sequence numbers have no gaps, so the newest ones are those above a number.
DELETE FROM snapshots WHERE match_id = :match_id AND sequence <= :sequence;

-- name: findings
-- Open ones first, then the latest answered.
SELECT * FROM findings
WHERE match_id = :match_id
ORDER BY closed_at IS NOT NULL, closed_at DESC, finding_id;

-- name: open_findings
-- The questions without an answer, in the order they were asked.
SELECT * FROM findings WHERE match_id = :match_id AND closed_at IS NULL ORDER BY finding_id;

-- name: open_finding
-- Ask a question; one that is open already only gets its new wording.
INSERT INTO findings (match_id, kind, place, detail, opened_at)
VALUES (:match_id, :kind, :place, :detail, :opened_at)
ON CONFLICT (match_id, kind, place) WHERE closed_at IS NULL
DO UPDATE SET detail = excluded.detail WHERE excluded.detail <> findings.detail;

-- name: close_finding
-- A question is answered.
UPDATE findings SET closed_at = :closed_at WHERE finding_id = :finding_id;

-- name: names
-- What the keys of a match stand for.
SELECT kind, key, name FROM names WHERE match_id = :match_id ORDER BY kind, key;

-- name: learn_name
-- A name, or a better one.
INSERT INTO names (match_id, kind, key, name) VALUES (:match_id, :kind, :key, :name)
ON CONFLICT (match_id, kind, key) DO UPDATE SET name = excluded.name WHERE excluded.name <> names.name;

-- name: begin_generation
-- A restored store is behind what was written after its backup: nobody's epoch or sequence number of then may come again.
UPDATE matches SET epoch = epoch + :step, seq = seq + :step;
