-- name: open_episodes
-- Every episode that is not resolved, by what makes it one.
SELECT ref, signature FROM scraper_errors WHERE resolved = 0;

-- name: continue_episode
-- The same error again: the open episode goes on, or one that seemed resolved a moment ago.
UPDATE scraper_errors
SET count = count + :count, last_seen = :last_seen, stack_trace = coalesce(stack_trace, :stack_trace),
    snapshot = coalesce(snapshot, :snapshot), resolved = 0, resolution_time = NULL, resolution_method = NULL
WHERE id = coalesce(
    (SELECT id FROM scraper_errors WHERE ref = :ref AND signature = :signature AND resolved = 0),
    (
        SELECT id FROM scraper_errors
        WHERE ref = :ref AND signature = :signature AND resolved = 1
            AND resolution_method <> 'manual' AND resolution_time > :resolved_after
        ORDER BY resolution_time DESC LIMIT 1
    )
)
RETURNING id;

-- name: open_episode
-- The first error of an episode.
INSERT INTO scraper_errors (
    scraper_id, match_id, timestamp, error_type, error_class, error_message, stack_trace, signature, source, ref, url,
    operation, retry_attempt, snapshot, count, last_seen
)
VALUES (
    :scraper_id, :match_id, :timestamp, :error_type, :error_class, :error_message, :stack_trace, :signature, :source,
    :ref, :url, :operation, :retry_attempt, :snapshot, max(1, :count), :last_seen
);

-- name: resolve_episode
-- An episode is over.
UPDATE scraper_errors SET resolved = 1, resolution_time = :at, resolution_method = :method
WHERE ref = :ref AND signature = :signature AND resolved = 0;

-- name: resolve_error
-- Somebody says that an error is dealt with.
UPDATE scraper_errors SET resolved = 1, resolution_time = :at, resolution_method = 'manual'
WHERE id = :id AND resolved = 0
RETURNING id;

-- name: prune_old
-- What is resolved and was not seen for long goes.
DELETE FROM scraper_errors WHERE resolved = 1 AND last_seen < :before;

-- name: prune_many
-- So does what is too much, resolved and old ones first.
DELETE FROM scraper_errors WHERE id IN (
    SELECT id FROM scraper_errors ORDER BY resolved DESC, last_seen
    LIMIT max(0, (SELECT count(*) FROM scraper_errors) - :max_rows)
);

-- name: errors
-- The newest first; an argument that is NULL asks for all.
SELECT * FROM scraper_errors
WHERE (:match_id IS NULL OR match_id = :match_id) AND (:ref IS NULL OR ref = :ref) AND (:open IS NULL OR resolved = 0)
ORDER BY last_seen DESC, id DESC
LIMIT :limit;
