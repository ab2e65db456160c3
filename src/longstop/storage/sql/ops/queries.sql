-- name: open_episodes
-- Unresolved episodes.
SELECT ref, signature FROM scraper_errors WHERE resolved = 0;

-- name: continue_episode
-- Continue an episode that is open or was resolved recently.
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
-- A new episode.
INSERT INTO scraper_errors (
    scraper_id, match_id, timestamp, error_type, error_class, error_message, stack_trace, signature, source, ref, url,
    operation, retry_attempt, snapshot, count, last_seen
)
VALUES (
    :scraper_id, :match_id, :timestamp, :error_type, :error_class, :error_message, :stack_trace, :signature, :source,
    :ref, :url, :operation, :retry_attempt, :snapshot, max(1, :count), :last_seen
);

-- name: resolve_episode
-- Resolve an episode.
UPDATE scraper_errors SET resolved = 1, resolution_time = :at, resolution_method = :method
WHERE ref = :ref AND signature = :signature AND resolved = 0;

-- name: resolve_error
-- Resolve an error on behalf of an operator.
UPDATE scraper_errors SET resolved = 1, resolution_time = :at, resolution_method = 'manual'
WHERE id = :id AND resolved = 0
RETURNING id;

-- name: prune_old
-- Remove resolved errors that were last seen before a time.
DELETE FROM scraper_errors WHERE resolved = 1 AND last_seen < :before;

-- name: prune_many
-- Remove errors beyond the limit, resolved and old ones first.
DELETE FROM scraper_errors WHERE id IN (
    SELECT id FROM scraper_errors ORDER BY resolved DESC, last_seen
    LIMIT max(0, (SELECT count(*) FROM scraper_errors) - :max_rows)
);

-- name: errors
-- Newest first; a parameter that is NULL selects all.
SELECT * FROM scraper_errors
WHERE (:match_id IS NULL OR match_id = :match_id) AND (:ref IS NULL OR ref = :ref) AND (:open IS NULL OR resolved = 0)
ORDER BY last_seen DESC, id DESC
LIMIT :limit;

-- name: put_recovery
-- Add a recovery, or update its outcome.
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
-- Close recoveries of an earlier run of a process; their outcome is unknown.
UPDATE recoveries SET outcome = 'not_recovered', observed = :observed
WHERE process = :process AND outcome = 'pending';

-- name: count_same_recoveries
-- Count the entries that the next statement removes in the oldest one that stays. Here and below, rows written last
-- are the newest: the wall clock may be set back.
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
-- Keep the newest entries of each kind and subject.
DELETE FROM recoveries WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY kind, subject ORDER BY rowid DESC) AS place
        FROM recoveries WHERE outcome <> 'pending'
    ) WHERE place > :kept
);

-- name: prune_recoveries
-- Keep a number of entries: the newest of each kind, then the second newest of each, and so on.
DELETE FROM recoveries WHERE id IN (
    SELECT id FROM (
        SELECT id, rowid AS written, row_number() OVER (PARTITION BY kind ORDER BY rowid DESC) AS place
        FROM recoveries
    ) ORDER BY place, written DESC LIMIT -1 OFFSET :kept
);

-- name: recoveries
-- Newest first.
SELECT * FROM recoveries ORDER BY rowid DESC LIMIT :limit;

-- name: put_health
-- The health of a node or a match at one time.
INSERT INTO scraper_health_log (
    scraper_id, match_id, ref, timestamp, health_status, error_count, memory_mb, cpu_percent, update_latency_ms,
    polling_interval_seconds, uptime_seconds, last_update_age_seconds
)
VALUES (
    :scraper_id, :match_id, :ref, :timestamp, :health_status, :error_count, :memory_mb, :cpu_percent,
    :update_latency_ms, :polling_interval_seconds, :uptime_seconds, :last_update_age_seconds
);

-- name: prune_old_health
-- Remove rows older than a time.
DELETE FROM scraper_health_log WHERE timestamp < :before;

-- name: prune_many_health
-- Remove rows beyond the limit, those written first.
DELETE FROM scraper_health_log WHERE id IN (
    SELECT id FROM scraper_health_log ORDER BY id
    LIMIT max(0, (SELECT count(*) FROM scraper_health_log) - :max_rows)
);

-- name: health_log
-- Newest first; a parameter that is NULL selects all.
SELECT * FROM scraper_health_log
WHERE (:match_id IS NULL OR match_id = :match_id) AND (:ref IS NULL OR ref = :ref)
    AND (:since IS NULL OR timestamp >= :since)
ORDER BY id DESC
LIMIT :limit;

-- name: ask_command
-- A new command.
INSERT INTO commands (kind, argument, asked_by, asked_at, asked_monotonic, boot)
VALUES (:kind, :argument, :asked_by, :asked_at, :asked_monotonic, :boot)
RETURNING *;

-- name: count_pending_commands
-- The number of pending commands.
SELECT count(*) AS waiting FROM commands WHERE state = 'pending';

-- name: prune_commands
-- Keep the newest answered commands.
DELETE FROM commands
WHERE state NOT IN ('pending', 'taken') AND id <= (SELECT max(id) FROM commands) - :kept;

-- name: open_commands
-- Unanswered commands, oldest first.
SELECT * FROM commands WHERE state IN ('pending', 'taken') ORDER BY id;

-- name: take_command
-- Take a pending command; no other scraper gets it.
UPDATE commands SET state = 'taken' WHERE id = :id AND state = 'pending' RETURNING *;

-- name: answer_command
-- Answer a command if its state is still the expected one.
UPDATE commands SET state = :state, refusal = :refusal, answer = :answer, answered_at = :at
WHERE id = :id AND state = :before
RETURNING *;

-- name: command
-- One command.
SELECT * FROM commands WHERE id = :id;

-- name: standing_orders
-- All standing orders.
SELECT * FROM standing_orders ORDER BY kind, subject;

-- name: put_standing_order
-- Add an order; if it exists it stays unchanged, and nothing is returned.
INSERT INTO standing_orders (kind, subject, since, asked_by, checksum)
VALUES (:kind, :subject, :since, :asked_by, :checksum)
ON CONFLICT (kind, subject) DO NOTHING RETURNING kind;

-- name: unprotected_orders
-- Orders of an earlier version, which have no checksum.
SELECT * FROM standing_orders WHERE checksum IS NULL;

-- name: protect_order
-- Add the checksum of an order.
UPDATE standing_orders SET checksum = :checksum WHERE kind = :kind AND subject = :subject;

-- name: lift_standing_order
-- Remove an order.
DELETE FROM standing_orders WHERE kind = :kind AND subject = :subject RETURNING kind;

-- name: request_pauses
-- All pauses.
SELECT * FROM request_pauses;

-- name: clear_request_pauses
-- Remove all pauses.
DELETE FROM request_pauses;

-- name: put_request_pause
-- Add a pause.
INSERT INTO request_pauses (source, kind, subject, until, until_monotonic, boot, reason)
VALUES (:source, :kind, :subject, :until, :until_monotonic, :boot, :reason);
