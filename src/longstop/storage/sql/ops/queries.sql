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

-- name: put_recovery
-- A recovery that begins, or what came of it.
INSERT INTO recoveries (
    id, kind, trigger, subject, process, began_at, duration_seconds, pids_before, pids_after, outcome, observed,
    count
)
VALUES (
    :id, :kind, :trigger, :subject, :process, :began_at, :duration_seconds, :pids_before, :pids_after, :outcome,
    :observed, :count
)
ON CONFLICT (id) DO UPDATE
SET duration_seconds = excluded.duration_seconds, pids_after = excluded.pids_after, outcome = excluded.outcome,
    observed = excluded.observed;

-- name: give_up_recoveries
-- What a former life of a process began: nobody is left to see what comes of it.
UPDATE recoveries SET outcome = 'not_recovered', observed = :observed
WHERE process = :process AND outcome = 'pending';

-- name: count_same_recoveries
-- What is let go of the same kind and subject is counted by the oldest that stays. Here as below, what was written last
-- is the newest: the wall clock may be set back.
WITH ranked AS (
    SELECT id, kind, subject, count,
        row_number() OVER (PARTITION BY kind, subject ORDER BY rowid DESC) AS place
    FROM recoveries WHERE outcome <> 'pending'
)
UPDATE recoveries
SET count = recoveries.count + (
    SELECT coalesce(sum(older.count), 0) FROM ranked AS older
    WHERE older.kind = recoveries.kind AND older.subject = recoveries.subject AND older.place > :kept
)
WHERE id IN (SELECT id FROM ranked WHERE place = :kept);

-- name: prune_same_recoveries
-- Of the same, the last ones are enough.
DELETE FROM recoveries WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY kind, subject ORDER BY rowid DESC) AS place
        FROM recoveries WHERE outcome <> 'pending'
    ) WHERE place > :kept
);

-- name: prune_recoveries
-- The last ones are enough, by turns of each kind.
DELETE FROM recoveries WHERE id IN (
    SELECT id FROM (
        SELECT id, rowid AS written, row_number() OVER (PARTITION BY kind ORDER BY rowid DESC) AS place
        FROM recoveries
    ) ORDER BY place, written DESC LIMIT -1 OFFSET :kept
);

-- name: recoveries
-- The newest first.
SELECT * FROM recoveries ORDER BY rowid DESC LIMIT :limit;

-- name: put_health
-- How a node or a match is, at one moment.
INSERT INTO scraper_health_log (
    scraper_id, match_id, ref, timestamp, health_status, error_count, memory_mb, cpu_percent, update_latency_ms,
    polling_interval_seconds, uptime_seconds, last_update_age_seconds
)
VALUES (
    :scraper_id, :match_id, :ref, :timestamp, :health_status, :error_count, :memory_mb, :cpu_percent,
    :update_latency_ms, :polling_interval_seconds, :uptime_seconds, :last_update_age_seconds
);

-- name: prune_old_health
-- What is old goes.
DELETE FROM scraper_health_log WHERE timestamp < :before;

-- name: prune_many_health
-- So does what is too much, what was written first before the rest.
DELETE FROM scraper_health_log WHERE id IN (
    SELECT id FROM scraper_health_log ORDER BY id
    LIMIT max(0, (SELECT count(*) FROM scraper_health_log) - :max_rows)
);

-- name: health_log
-- The newest first; an argument that is NULL asks for all.
SELECT * FROM scraper_health_log
WHERE (:match_id IS NULL OR match_id = :match_id) AND (:ref IS NULL OR ref = :ref)
    AND (:since IS NULL OR timestamp >= :since)
ORDER BY id DESC
LIMIT :limit;

-- name: ask_command
-- A command is asked for.
INSERT INTO commands (kind, argument, asked_by, asked_at, asked_monotonic, boot)
VALUES (:kind, :argument, :asked_by, :asked_at, :asked_monotonic, :boot)
RETURNING *;

-- name: count_pending_commands
-- How many wait.
SELECT count(*) AS waiting FROM commands WHERE state = 'pending';

-- name: prune_commands
-- The newest answered ones are enough.
DELETE FROM commands
WHERE state NOT IN ('pending', 'taken') AND id <= (SELECT max(id) FROM commands) - :kept;

-- name: open_commands
-- What is not answered, oldest first.
SELECT * FROM commands WHERE state IN ('pending', 'taken') ORDER BY id;

-- name: take_command
-- From here on the command is this scraper's, and nobody else does it.
UPDATE commands SET state = 'taken' WHERE id = :id AND state = 'pending' RETURNING *;

-- name: answer_command
-- What came of a command; nothing changes when it has moved on meanwhile.
UPDATE commands SET state = :state, refusal = :refusal, answer = :answer, answered_at = :at
WHERE id = :id AND state = :before
RETURNING *;

-- name: command
-- One command.
SELECT * FROM commands WHERE id = :id;

-- name: standing_orders
-- Everything in force.
SELECT * FROM standing_orders ORDER BY kind, subject;

-- name: put_standing_order
-- An order; one in force already stays as it is, and nothing is returned.
INSERT INTO standing_orders (kind, subject, since, asked_by) VALUES (:kind, :subject, :since, :asked_by)
ON CONFLICT (kind, subject) DO NOTHING RETURNING kind;

-- name: lift_standing_order
-- An order is taken back.
DELETE FROM standing_orders WHERE kind = :kind AND subject = :subject RETURNING kind;
