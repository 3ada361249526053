// The SQL of the session advisory locks.
//
// The advisory lock excludes everybody, other programs too. The row beside it has the token, and
// how long the lease lasts: if its session dies early, the next Leasehold client has the advisory
// lock, but waits until the lease is over, since its holder may not know yet.
//
// An advisory lock is not given back by a rollback. So a client drops a session whose call failed.
#pragma once

namespace leasehold::postgres {

inline constexpr const char* kAdvisorySchema = R"sql(
CREATE TABLE IF NOT EXISTS @S.session_lock(
  name text COLLATE "C" PRIMARY KEY,
  token bigint NOT NULL DEFAULT 0,
  store uuid,
  request uuid,
  owner text NOT NULL DEFAULT '',
  pid integer NOT NULL DEFAULT 0,
  backend_start timestamptz NOT NULL DEFAULT '-infinity',
  granted_at timestamptz NOT NULL DEFAULT '-infinity',
  expires_at timestamptz NOT NULL DEFAULT '-infinity',
  freed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_released uuid) WITH (fillfactor = 50);

CREATE UNLOGGED TABLE IF NOT EXISTS @S.session_waiter(
  pid integer PRIMARY KEY,
  backend_start timestamptz NOT NULL,
  lock text COLLATE "C" NOT NULL,
  request uuid NOT NULL,
  owner text NOT NULL);

-- STABLE, as what it calls: a function that says more is not inlined, but parsed at each call.
CREATE OR REPLACE FUNCTION @S.key(a_lock text) RETURNS bigint LANGUAGE sql STABLE
RETURN ('x' || encode(substr(sha256(convert_to(a_lock, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;

-- Looked up once in a session: the statistics of all sessions must be read for it. Kept as a number,
-- which reads the same whatever the session's settings are.
CREATE OR REPLACE FUNCTION @S.own_start() RETURNS timestamptz LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known text := current_setting('leasehold.backend_began', true);
BEGIN
  IF coalesce(known, '') = '' THEN
    SELECT set_config('leasehold.backend_began',
                      (extract(epoch FROM backend_start) * 1000000)::bigint::text, false) INTO known
      FROM pg_stat_activity WHERE pid = pg_backend_pid();
  END IF;
  RETURN timestamptz 'epoch' + known::bigint * interval '1 microsecond';
END $$;

CREATE OR REPLACE VIEW @S.advisory AS
  SELECT pid, granted, waitstart, (classid::bigint << 32) | objid::bigint AS key
  FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- Other programs; the sessions of leases have the name that session_name() gives them.
CREATE OR REPLACE FUNCTION @S.strangers()
RETURNS TABLE (pid integer, granted boolean, waitstart timestamptz, key bigint, label text)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT a.pid, a.granted, a.waitstart, a.key,
         format('%s, pid %s, user %s', coalesce(nullif(s.application_name, ''), 'another program'),
                a.pid, s.usename)
  FROM @S.advisory a LEFT JOIN pg_stat_activity s ON s.pid = a.pid
  WHERE coalesce(s.application_name, '') !~ '^leasehold [0-9a-f]{32} [0-9a-f]{16}$';
END;

CREATE OR REPLACE FUNCTION @S.foreign_label(a_key bigint) RETURNS text LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT label FROM @S.strangers() WHERE key = a_key AND granted ORDER BY pid LIMIT 1;
END;

-- Whoever keeps others out: the owner of a lease, even when its session has ended, unless another
-- program has taken the advisory lock since. The start of another role's session may be hidden.
CREATE OR REPLACE FUNCTION @S.holder_label(a_lock text, a_key bigint) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
BEGIN
  SELECT owner, pid, backend_start INTO l FROM @S.session_lock
    WHERE name = a_lock AND expires_at > clock_timestamp();
  IF FOUND AND EXISTS (SELECT 1 FROM pg_stat_get_activity(l.pid) s
                       WHERE coalesce(s.backend_start = l.backend_start, true)) THEN
    RETURN l.owner;
  END IF;
  RETURN coalesce(@S.foreign_label(a_key), l.owner);
END $$;

-- One that ends by itself meanwhile is no reason to warn.
CREATE OR REPLACE FUNCTION @S.end_session(a_pid integer, a_start timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = error AS $$
BEGIN
  PERFORM pg_terminate_backend(pid, 2000) FROM pg_stat_activity
    WHERE pid = a_pid AND backend_start = a_start AND pid <> pg_backend_pid();
END $$;

-- As sweep() and recount().
CREATE OR REPLACE FUNCTION @S.session_sweep() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  pages bigint := pg_relation_size('@S.session_lock') / current_setting('block_size')::bigint;
  page bigint := floor(random() * greatest(pages - 31, 1));
  ended_before timestamptz := clock_timestamp() - (SELECT sweep_after FROM @S.meta);
BEGIN
  DELETE FROM @S.session_lock WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM @S.session_lock k
    WHERE k.ctid >= format('(%s,0)', page)::tid AND k.ctid < format('(%s,0)', page + 32)::tid
      AND greatest(k.expires_at, k.freed_at) < ended_before
      AND NOT EXISTS (SELECT 1 FROM @S.session_waiter w, pg_stat_get_activity(w.pid) s
                      WHERE w.lock = k.name AND coalesce(s.backend_start = w.backend_start, true))
    LIMIT 80 FOR UPDATE OF k SKIP LOCKED));
END $$;

CREATE OR REPLACE FUNCTION @S.session_recount(a_lock text, a_token bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  sound bigint := @S.sound_token(a_token);
BEGIN
  UPDATE @S.session_lock SET token = sound WHERE name = a_lock AND token <> sound;
  RETURN sound;
END $$;

CREATE OR REPLACE FUNCTION @S.session_grant(
  a_lock text, a_request uuid, a_owner text, a_ttl_ms bigint, a_queue boolean,
  OUT o_outcome text, OUT o_token bigint, OUT o_store uuid, OUT o_ahead text,
  OUT o_recheck_ms bigint, OUT o_fresh boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
  is_plain boolean;
BEGIN
  IF num_nulls(a_lock, a_request, a_owner, a_ttl_ms, a_queue) > 0 THEN PERFORM @S.refuse_null(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM @S.refuse_isolation(); END IF;
  PERFORM @S.commit_durably();
  LOOP
    SELECT * INTO l FROM @S.session_lock WHERE name = a_lock FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO @S.session_lock(name) VALUES (a_lock) ON CONFLICT DO NOTHING;
  END LOOP;
  IF l.last_released = a_request
     OR EXISTS (SELECT 1 FROM @S.withdrawn WHERE request = a_request) THEN
    o_outcome := 'busy';  -- it comes after its own release: nobody waits for it any more
    PERFORM pg_advisory_unlock(@S.key(a_lock));
    RETURN;
  END IF;
  IF l.expires_at > clock_timestamp() AND l.request <> a_request THEN
    o_ahead := l.owner;
    IF a_queue THEN
      o_outcome := 'queued';
      o_recheck_ms := least(2000, 1 + ceil(extract(epoch FROM l.expires_at - clock_timestamp()) * 1000));
    ELSE
      o_outcome := 'busy';
      PERFORM pg_advisory_unlock(@S.key(a_lock));
    END IF;
    RETURN;
  END IF;
  IF l.expires_at > clock_timestamp() THEN
    UPDATE @S.session_lock SET pid = pg_backend_pid(), backend_start = @S.own_start()
      WHERE name = a_lock RETURNING token, store INTO o_token, o_store;
  ELSE
    UPDATE @S.session_lock k
      SET token = nextval('@S.token'), store = m.session_store, request = a_request,
          owner = a_owner, pid = pg_backend_pid(), backend_start = @S.own_start(),
          granted_at = clock_timestamp(),
          expires_at = clock_timestamp() + a_ttl_ms * interval '1 ms'
      FROM @S.meta m WHERE k.name = a_lock
      RETURNING k.token, k.store, @S.is_plain(k.token, m.token_ceiling, m.server_start, m.counter_file)
      INTO o_token, o_store, is_plain;
    IF NOT FOUND THEN PERFORM @S.refuse_empty(); END IF;
    IF NOT is_plain THEN o_token := @S.session_recount(a_lock, o_token); END IF;
    IF o_token % 64 = 0 THEN PERFORM @S.sweep(), @S.session_sweep(); END IF;
    o_fresh := true;
  END IF;
  DELETE FROM @S.session_waiter WHERE pid = pg_backend_pid();
  PERFORM set_config('idle_session_timeout', a_ttl_ms::text, false),
          set_config('lock_timeout', '10s', false);
  o_outcome := 'granted';
END $$;

CREATE OR REPLACE FUNCTION @S.session_name(a_request uuid, a_attempt bigint) RETURNS text LANGUAGE sql
IMMUTABLE
RETURN 'leasehold ' || replace(a_request::text, '-', '') || ' ' || lpad(to_hex(a_attempt), 16, '0');

CREATE OR REPLACE FUNCTION @S.earlier_session(a_key bigint, a_request uuid, a_attempt bigint,
                                   OUT o_pid integer, OUT o_start timestamptz)
LANGUAGE sql
BEGIN ATOMIC
  SELECT s.pid, s.backend_start FROM @S.advisory a JOIN pg_stat_activity s ON s.pid = a.pid
  WHERE a.key = a_key AND a.granted
    AND s.application_name LIKE 'leasehold ' || replace(a_request::text, '-', '') || ' %'
    AND s.application_name COLLATE "C" < @S.session_name(a_request, a_attempt);
END;

CREATE OR REPLACE FUNCTION @S.session_acquire(
  a_lock text, a_request uuid, a_owner text, a_ttl_ms bigint, a_queue boolean, a_attempt bigint,
  a_retried boolean, OUT o_outcome text, OUT o_token bigint, OUT o_store uuid, OUT o_ahead text,
  OUT o_recheck_ms bigint, OUT o_fresh boolean, OUT o_has_lock boolean, OUT o_key bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
BEGIN
  IF num_nulls(a_lock, a_request, a_owner, a_ttl_ms, a_queue, a_attempt, a_retried) > 0 THEN PERFORM @S.refuse_null(); END IF;
  o_key := @S.key(a_lock);
  PERFORM set_config('application_name', @S.session_name(a_request, a_attempt), false);
  o_has_lock := pg_try_advisory_lock(o_key);
  IF NOT o_has_lock AND a_retried THEN  -- perhaps by an attempt whose reply was lost
    PERFORM @S.end_session(e.o_pid, e.o_start)
      FROM @S.earlier_session(o_key, a_request, a_attempt) e;
    -- Also if there is none: it may have ended by itself since.
    o_has_lock := pg_try_advisory_lock(o_key);
  END IF;
  IF o_has_lock THEN
    SELECT g.o_outcome, g.o_token, g.o_store, g.o_ahead, g.o_recheck_ms, g.o_fresh
      INTO o_outcome, o_token, o_store, o_ahead, o_recheck_ms, o_fresh
      FROM @S.session_grant(a_lock, a_request, a_owner, a_ttl_ms, a_queue) g;
    IF o_outcome = 'queued' THEN
      PERFORM @S.session_enqueue(a_lock, a_request, a_owner);
    END IF;
    RETURN;
  END IF;
  SELECT CASE WHEN expires_at > clock_timestamp() THEN owner END AS owner,
         granted_at > clock_timestamp() - interval '5 s' AS lively
    INTO l FROM @S.session_lock WHERE name = a_lock;
  o_ahead := l.owner;
  -- To read what all sessions hold takes longer than the rest, and in a lively queue nobody waits
  -- long enough to be told.
  IF NOT (a_queue AND coalesce(l.lively, false)) THEN
    o_ahead := @S.holder_label(a_lock, o_key);
  END IF;
  IF NOT a_queue THEN
    o_outcome := 'busy';
    RETURN;
  END IF;
  o_outcome := 'queued';
  o_recheck_ms := 2000;
  PERFORM @S.session_enqueue(a_lock, a_request, a_owner);
END $$;

CREATE OR REPLACE FUNCTION @S.session_enqueue(a_lock text, a_request uuid, a_owner text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO @S.session_waiter
    VALUES (pg_backend_pid(), @S.own_start(), a_lock, a_request, a_owner)
    ON CONFLICT (pid) DO UPDATE SET backend_start = excluded.backend_start, lock = excluded.lock,
                                    request = excluded.request, owner = excluded.owner;
  -- A waiter that is granted the lock while it is frozen, or dead, must let it go.
  PERFORM set_config('idle_session_timeout', '6000', false),
          set_config('client_connection_check_interval', '500', false),
          set_config('lock_timeout', '0', false);
END $$;

CREATE OR REPLACE FUNCTION @S.session_renew(a_lock text, a_request uuid, a_ttl_ms bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  renewed boolean;
BEGIN
  IF num_nulls(a_lock, a_request, a_ttl_ms) > 0 THEN PERFORM @S.refuse_null(); END IF;
  PERFORM @S.commit_durably();
  PERFORM set_config('idle_session_timeout', a_ttl_ms::text, false);
  UPDATE @S.session_lock SET expires_at = clock_timestamp() + a_ttl_ms * interval '1 ms'
    WHERE name = a_lock AND request = a_request AND expires_at > clock_timestamp()
      AND pid = pg_backend_pid();
  renewed := FOUND;
  -- Here, because it is rare: waiters that have died.
  DELETE FROM @S.session_waiter w WHERE w.lock = a_lock
    AND NOT EXISTS (SELECT 1 FROM pg_stat_activity s
                    WHERE s.pid = w.pid AND s.backend_start = w.backend_start);
  RETURN renewed;
END $$;

-- `a_doubtful`: an acquire of this request may still be on its way.
-- The holder's own release need not wait for the disk: if it is lost, so is its session, and the
-- lock is free when the lease would have ended.
CREATE OR REPLACE FUNCTION @S.session_release(a_lock text, a_request uuid, a_doubtful boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
  w record;
  done boolean;
BEGIN
  IF num_nulls(a_lock, a_request, a_doubtful) > 0 THEN PERFORM @S.refuse_null(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM @S.refuse_isolation(); END IF;
  -- The row is there before it is looked at: a grant that is not committed yet is waited for.
  LOOP
    SELECT *, expires_at > clock_timestamp() AS alive INTO l FROM @S.session_lock
      WHERE name = a_lock FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO @S.session_lock(name) VALUES (a_lock) ON CONFLICT DO NOTHING;
  END LOOP;
  IF a_doubtful OR l.request IS DISTINCT FROM a_request OR l.pid <> pg_backend_pid() THEN
    PERFORM @S.commit_durably();
  ELSE
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  IF a_doubtful THEN PERFORM @S.withdraw(a_lock, a_request); END IF;
  IF l.request = a_request THEN
    UPDATE @S.session_lock
      SET request = NULL, expires_at = '-infinity', freed_at = clock_timestamp(),
          last_released = CASE WHEN l.alive THEN a_request ELSE last_released END
      WHERE name = a_lock;
    IF l.pid = pg_backend_pid() THEN
      done := pg_advisory_unlock(@S.key(a_lock)) AND l.alive;
      PERFORM set_config('idle_session_timeout', '0', false);
      RETURN done;
    END IF;
    PERFORM @S.end_session(l.pid, l.backend_start);
    RETURN l.alive;
  END IF;
  IF l.last_released = a_request THEN RETURN true; END IF;
  PERFORM @S.withdraw(a_lock, a_request);
  FOR w IN DELETE FROM @S.session_waiter WHERE request = a_request RETURNING * LOOP
    PERFORM @S.end_session(w.pid, w.backend_start);
    RETURN true;
  END LOOP;
  RETURN false;
END $$;

CREATE OR REPLACE FUNCTION @S.session_force(a_lock text, a_seen uuid) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
BEGIN
  IF num_nulls(a_lock, a_seen) > 0 THEN PERFORM @S.refuse_null(); END IF;
  PERFORM @S.commit_durably();
  UPDATE @S.session_lock
    SET request = NULL, expires_at = '-infinity', freed_at = clock_timestamp()
    WHERE name = a_lock AND request = a_seen AND expires_at > clock_timestamp() RETURNING * INTO l;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM @S.end_session(l.pid, l.backend_start);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION @S.session_record(a_lock text, a_request uuid, a_key text, a_parameters bytea,
                                  a_result bytea) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF num_nulls(a_lock, a_request, a_key, a_parameters, a_result) > 0 THEN PERFORM @S.refuse_null(); END IF;
  PERFORM @S.commit_durably();
  PERFORM 1 FROM @S.session_lock WHERE name = a_lock AND request = a_request
    AND expires_at > clock_timestamp() FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO @S.once VALUES (a_lock, a_key, a_parameters, a_result) ON CONFLICT DO NOTHING;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION @S.session_status(a_lock text)
RETURNS TABLE (o_lock text, o_store uuid, o_waits boolean, o_request uuid, o_owner text,
               o_token bigint, o_held_ms bigint, o_remaining_ms bigint, o_kept boolean,
               o_known_as text, o_counted_to bigint, o_mode bigint, o_slot bigint, o_note text,
               o_permits bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  t timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
    WITH locks AS MATERIALIZED (SELECT * FROM @S.advisory),
    strangers AS MATERIALIZED (SELECT * FROM @S.strangers()),
    names AS (
      SELECT a_lock AS name WHERE a_lock IS NOT NULL
      UNION SELECT l.name FROM @S.session_lock l WHERE a_lock IS NULL
      UNION SELECT w.lock FROM @S.session_waiter w JOIN locks a ON a.pid = w.pid AND a.key = @S.key(w.lock)
        WHERE a_lock IS NULL),
    rows AS (
      SELECT n.name, false AS waits, NULL::timestamptz AS since, 0 AS pid,
             CASE WHEN s.pid IS NOT NULL THEN md5(s.pid::text)::uuid
                  WHEN l.expires_at > t THEN l.request END AS request,
             CASE WHEN s.pid IS NOT NULL THEN s.label WHEN l.expires_at > t THEN l.owner END AS owner,
             CASE WHEN l.token > 0 THEN l.token WHEN s.pid IS NOT NULL THEN 1 END AS token,
             CASE WHEN s.pid IS NULL AND l.expires_at > t THEN l.granted_at ELSE t END AS granted_at,
             CASE WHEN s.pid IS NOT NULL THEN t WHEN l.expires_at > t THEN l.expires_at END
               AS expires_at
      FROM names n LEFT JOIN @S.session_lock l ON l.name = n.name
      -- Several may share it.
      LEFT JOIN LATERAL (SELECT * FROM strangers WHERE key = @S.key(n.name) AND granted
                         ORDER BY pid LIMIT 1) s ON true
      UNION ALL
      SELECT n.name, true, s.waitstart, s.pid, md5(s.pid::text)::uuid, s.label, NULL, NULL, NULL
      FROM names n JOIN strangers s ON s.key = @S.key(n.name) AND NOT s.granted
      UNION ALL
      SELECT w.lock, true, CASE WHEN a.granted THEN '-infinity' ELSE a.waitstart END, w.pid,
             w.request, w.owner, NULL, NULL, NULL
      FROM names n JOIN @S.session_waiter w ON w.lock = n.name
      JOIN locks a ON a.pid = w.pid AND a.key = @S.key(w.lock))
    SELECT r.name, m.session_store, r.waits, r.request, r.owner, r.token,
           floor(extract(epoch FROM t - r.granted_at) * 1000)::bigint,
           ceil(extract(epoch FROM r.expires_at - t) * 1000)::bigint, false,
           format('SELECT pg_try_advisory_lock(%s)', @S.key(r.name)), @S.counted_to(),
           0::bigint, NULL::bigint, ''::text, NULL::bigint
    FROM rows r, @S.meta m ORDER BY r.name COLLATE "C", r.waits, r.since NULLS LAST, r.pid;
END $$;

CREATE OR REPLACE FUNCTION @S.transaction_lock(a_lock text, a_wait_ms bigint, a_idle_ms bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key bigint := @S.key(a_lock);
  give_up timestamptz := clock_timestamp() + a_wait_ms * interval '1 ms';
  before text := current_setting('lock_timeout');
  idle bigint := (SELECT setting FROM pg_settings
                  WHERE name = 'idle_in_transaction_session_timeout');
  ends timestamptz;
BEGIN
  IF num_nulls(a_lock, a_wait_ms, a_idle_ms) > 0 THEN PERFORM @S.refuse_null(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE invalid_transaction_state USING MESSAGE =
      'a transaction that is not READ COMMITTED would read what was there before it had the lock';
  END IF;
  BEGIN
    IF NOT pg_try_advisory_xact_lock(key) THEN
      IF a_wait_ms = 0 THEN
        RETURN coalesce(@S.holder_label(a_lock, key), '');
      END IF;
      PERFORM set_config('lock_timeout', a_wait_ms::text, true);
      PERFORM pg_advisory_xact_lock(key);
      PERFORM set_config('lock_timeout', before, true);
    END IF;
    -- The lease of a session that died early is waited out.
    LOOP
      SELECT expires_at INTO ends FROM @S.session_lock
        WHERE name = a_lock AND expires_at > clock_timestamp();
      EXIT WHEN NOT FOUND;
      IF ends > give_up THEN
        RAISE lock_not_available;
      END IF;
      -- In short steps: a release lets the advisory lock go just before it commits.
      PERFORM pg_sleep(0.01);
    END LOOP;
  EXCEPTION WHEN lock_not_available THEN
    RETURN coalesce(@S.holder_label(a_lock, key), '');
  END;
  IF idle = 0 OR idle > a_idle_ms THEN
    PERFORM set_config('idle_in_transaction_session_timeout', a_idle_ms::text, true);
  END IF;
  RETURN NULL;
END $$;
)sql";

}  // namespace leasehold::postgres
