// The SQL of the lease rows.
//
// Every change of a lock and of its queue is made by a transaction that has locked the lock's row
// first. The clock is read after that, or its older time is the safe one. `attend` in the row says
// that waiters or withdrawn requests are to be looked at, as in a row that is new; without it, one
// statement on the row alone decides: if it had to wait for the row, it judges by the row as it is
// then, and draws its token then. A waiter that was passed over because it does not listen keeps
// its place: it may be connecting anew.
//
// An exclusive holder stands in the lock's row. Those who hold beside others stand in the table
// `holder`, and `crowd` in the lock's row is not 0 then, but may be so for nobody: it is the mode
// that they have in common. A mode is 0 for exclusive, -1 for shared, else one of so many permits.
// A renewal locks the holder's row alone. So who passes over a holder whose time is over deletes
// its row first, which waits for a renewal that is under way.
#pragma once

namespace leasehold::postgres {

// Programs with any search_path may call these functions. Those in SQL are bound to what they name
// when they are made.
inline constexpr const char* kRowSchema = R"sql(
CREATE TABLE IF NOT EXISTS @S.lock(
  name text COLLATE "C" PRIMARY KEY,
  token bigint NOT NULL DEFAULT 0,
  store uuid,
  request uuid,
  owner text NOT NULL DEFAULT '',
  granted_at timestamptz NOT NULL DEFAULT '-infinity',
  expires_at timestamptz NOT NULL DEFAULT '-infinity',
  freed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  kept boolean NOT NULL DEFAULT false,
  attend boolean NOT NULL DEFAULT true,
  last_released uuid,
  note text NOT NULL DEFAULT '',
  crowd bigint NOT NULL DEFAULT 0,
  permits bigint,
  no_bells_until timestamptz NOT NULL DEFAULT '-infinity') WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS @S.holder(
  request uuid PRIMARY KEY,
  lock text COLLATE "C" NOT NULL,
  mode bigint NOT NULL,
  slot bigint NOT NULL,
  token bigint NOT NULL,
  store uuid NOT NULL,
  owner text NOT NULL,
  note text NOT NULL,
  granted_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  kept boolean NOT NULL DEFAULT false);
CREATE INDEX IF NOT EXISTS holder_by_slot ON @S.holder(lock, slot);

CREATE UNLOGGED TABLE IF NOT EXISTS @S.waiter(
  request uuid PRIMARY KEY,
  lock text COLLATE "C" NOT NULL,
  place bigint NOT NULL,
  owner text NOT NULL,
  presence bigint,
  alive_until timestamptz NOT NULL,
  mode bigint NOT NULL,
  note text NOT NULL,
  pid integer,
  role name NOT NULL DEFAULT session_user);
CREATE INDEX IF NOT EXISTS waiter_by_place ON @S.waiter(lock, place);

CREATE UNLOGGED TABLE IF NOT EXISTS @S.withdrawn(
  request uuid PRIMARY KEY,
  lock text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL);
CREATE INDEX IF NOT EXISTS withdrawn_by_lock ON @S.withdrawn(lock);
CREATE INDEX IF NOT EXISTS withdrawn_by_time ON @S.withdrawn(at);

CREATE TABLE IF NOT EXISTS @S.once(
  lock text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  parameters bytea NOT NULL,
  result bytea NOT NULL,
  PRIMARY KEY (lock, key));

-- A comparison with NULL is neither true nor false, so that who forgets something would be told what
-- is not so.
CREATE OR REPLACE FUNCTION @S.refuse_null() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE null_value_not_allowed USING MESSAGE =
    'leasehold: invalid: an argument is NULL, or the arrays are not equally long; only presence and pid of a waiter may be NULL';
END $$;

-- What others did while this one waited for a lock's row would not be seen.
CREATE OR REPLACE FUNCTION @S.refuse_isolation() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE invalid_transaction_state USING MESSAGE =
    'leasehold: invalid: locks are taken and released in a transaction that is READ COMMITTED';
END $$;

CREATE OR REPLACE FUNCTION @S.refuse_empty() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE no_data_found USING MESSAGE =
    'leasehold: unavailable: the table meta of this schema is empty; if the schema is being copied, let that end first';
END $$;

CREATE OR REPLACE FUNCTION @S.listens(a_presence bigint) RETURNS boolean LANGUAGE sql
RETURN a_presence IS NULL OR NOT pg_try_advisory_xact_lock_shared(a_presence);

-- Two advisory locks of a session that may doze. It has the first to itself while it does. Who rings
-- shares the second from before it looks at the first until it commits.
CREATE OR REPLACE FUNCTION @S.bell(a_presence bigint, a_pid integer) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN a_presence # a_pid;
CREATE OR REPLACE FUNCTION @S.rope(a_presence bigint, a_pid integer) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN ~ (a_presence # a_pid);

CREATE OR REPLACE FUNCTION @S.is_lively(a_granted_at timestamptz) RETURNS boolean LANGUAGE sql
RETURN a_granted_at > clock_timestamp() - interval '200 ms';

-- Sleeps until it is rung or the time is over: who rings ends the statement, and reaches this
-- session alone. Then 'ask': one of the requests may be granted; 'doze': none of them, but their
-- locks still change hands quickly; 'listen': as things are, a notification will come.
CREATE OR REPLACE FUNCTION @S.doze(a_presence bigint, a_requests uuid[], a_ms bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  w record;
  asking uuid;
  next_step text := 'listen';
BEGIN
  -- Somebody found it awake, and is about to notify it.
  IF NOT pg_try_advisory_xact_lock(@S.bell(a_presence, pg_backend_pid())) THEN RETURN 'listen'; END IF;
  -- What it was notified of just before, it would read only when it does not doze any more.
  FOREACH asking IN ARRAY a_requests LOOP
    SELECT lock, place INTO w FROM @S.waiter WHERE request = asking;
    CONTINUE WHEN NOT FOUND;
    PERFORM 1 FROM @S.waiter WHERE lock = w.lock AND place < w.place;
    CONTINUE WHEN FOUND;
    PERFORM 1 FROM @S.lock WHERE name = w.lock AND expires_at <= clock_timestamp();
    IF FOUND THEN RETURN 'ask'; END IF;
  END LOOP;
  PERFORM pg_sleep(a_ms / 1000.0);
  FOREACH asking IN ARRAY a_requests LOOP
    PERFORM 1 FROM @S.waiter r JOIN @S.lock l ON l.name = r.lock
      WHERE r.request = asking AND @S.is_lively(l.granted_at);
    IF FOUND THEN next_step := 'doze'; END IF;
  END LOOP;
  -- Somebody found it dozing, and may ring when it does not any more.
  IF NOT pg_try_advisory_xact_lock(@S.rope(a_presence, pg_backend_pid())) THEN RETURN 'ask'; END IF;
  RETURN next_step;
EXCEPTION WHEN query_canceled THEN RETURN 'ask';
END $$;

-- Those of a client's requests that come next; its own session is this one.
CREATE OR REPLACE FUNCTION @S.first_in_line(a_presence bigint, a_requests uuid[]) RETURNS SETOF uuid LANGUAGE sql
BEGIN ATOMIC
  SELECT w.request FROM @S.waiter w WHERE w.request = ANY (a_requests)
    AND NOT EXISTS (SELECT 1 FROM @S.waiter o WHERE o.lock = w.lock AND o.place < w.place
                    AND (o.presence = a_presence OR @S.listens(o.presence)));
END;

-- Of a lock whose row is locked: who is woken before this commits waits for that when it asks.
CREATE OR REPLACE FUNCTION @S.wake(a_lock text, a_request uuid, a_presence bigint, a_pid integer,
                        a_role name) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF a_pid IS NOT NULL THEN
    -- Waits at most for the last instant of a doze.
    PERFORM pg_advisory_xact_lock_shared(@S.rope(a_presence, a_pid));
    -- A session that is found awake cannot begin to doze before this commits.
    IF NOT pg_try_advisory_xact_lock_shared(@S.bell(a_presence, a_pid)) THEN
      IF a_role = current_user AND has_function_privilege('pg_cancel_backend(integer)', 'EXECUTE') THEN
        PERFORM pg_cancel_backend(a_pid);
        RETURN;
      END IF;
      UPDATE @S.lock SET no_bells_until = clock_timestamp() + interval '1 minute' WHERE name = a_lock;
    END IF;
  END IF;
  PERFORM pg_notify('leasehold_' || to_hex(a_presence), a_request::text);
END $$;

CREATE OR REPLACE FUNCTION @S.mix(a_mode bigint, a_other bigint) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN CASE WHEN a_mode > 0 OR a_other > 0 THEN a_mode = a_other ELSE true END;

-- The first of those who wait before `a_asking`, if so many do that it cannot share with as there is
-- room for; or who wants the lock for another use than permits. `a_set`: their number is.
CREATE OR REPLACE FUNCTION @S.first_waiter(a_lock text, a_asking uuid, a_tell boolean,
                                a_mode bigint DEFAULT 0, a_room bigint DEFAULT 1,
                                a_set boolean DEFAULT false,
                                OUT o_request uuid, OUT o_owner text, OUT o_mode bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  w record;
BEGIN
  FOR w IN SELECT * FROM @S.waiter WHERE lock = a_lock ORDER BY place LOOP
    EXIT WHEN w.request = a_asking;
    CONTINUE WHEN a_mode = -1 AND w.mode = -1;
    IF w.alive_until <= clock_timestamp() THEN
      DELETE FROM @S.waiter WHERE request = w.request;
      a_tell := true;  -- perhaps only that one was told
      CONTINUE;
    END IF;
    IF NOT @S.listens(w.presence) THEN
      a_tell := true;
      CONTINUE;
    END IF;
    IF a_tell AND w.presence IS NOT NULL THEN
      PERFORM @S.wake(a_lock, w.request, w.presence, w.pid, w.role);
    END IF;
    IF a_mode > 0 AND NOT (w.mode = a_mode OR a_set AND w.mode > 0) THEN
      o_request := NULL;
      a_room := 0;
    END IF;
    IF o_request IS NULL THEN
      o_request := w.request;
      o_owner := w.owner;
      o_mode := w.mode;
    END IF;
    a_room := a_room - 1;
    IF a_room <= 0 THEN RETURN; END IF;
  END LOOP;
  o_request := NULL;
  o_owner := NULL;
  o_mode := NULL;
END $$;

-- Of those who hold the lock beside others.
CREATE OR REPLACE FUNCTION @S.drop_ended(a_lock text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM 1 FROM @S.holder WHERE lock = a_lock AND expires_at <= clock_timestamp()
    ORDER BY request FOR UPDATE;
  DELETE FROM @S.holder WHERE lock = a_lock AND expires_at <= clock_timestamp();
END $$;

-- Tells the first who waits, if it may be granted now.
CREATE OR REPLACE FUNCTION @S.tell_next(a_lock text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
  first_mode bigint;
  held bigint;
BEGIN
  SELECT mode INTO first_mode FROM @S.waiter WHERE lock = a_lock ORDER BY place LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT * INTO l FROM @S.lock WHERE name = a_lock;
  IF l.expires_at > clock_timestamp() THEN RETURN; END IF;
  IF l.crowd <> 0 AND first_mode <> -1 THEN
    SELECT count(*) INTO held FROM @S.holder WHERE lock = a_lock AND expires_at > clock_timestamp();
    IF held >= (CASE WHEN first_mode > 0 THEN coalesce(l.permits, first_mode) ELSE 1 END) THEN RETURN; END IF;
  END IF;
  PERFORM @S.first_waiter(a_lock, NULL, true);
END $$;

CREATE OR REPLACE FUNCTION @S.enqueue(a_lock text, a_request uuid, a_owner text, a_presence bigint,
                           a_free_at timestamptz, a_mode bigint, a_note text, a_pid integer)
RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ahead bigint;
  patience interval := CASE WHEN a_presence IS NULL THEN '100 ms' ELSE '2 s' END;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO @S.waiter(request, lock, place, owner, presence, alive_until, mode, note, pid)
    SELECT a_request, a_lock, coalesce(max(place), 0) + 1, a_owner, a_presence,
           clock_timestamp() + interval '6 s', a_mode, a_note, a_pid
    FROM @S.waiter WHERE lock = a_lock
    ON CONFLICT (request) DO UPDATE
      SET presence = excluded.presence, alive_until = excluded.alive_until, pid = excluded.pid;
  UPDATE @S.lock SET attend = true WHERE name = a_lock AND NOT attend;
  SELECT count(*) INTO ahead FROM (
    SELECT 1 FROM @S.waiter w WHERE w.lock = a_lock
      AND w.place < (SELECT place FROM @S.waiter WHERE request = a_request) LIMIT 2) before;
  IF ahead < 2 AND a_free_at IS NOT NULL THEN
    patience := least(patience, greatest(a_free_at - clock_timestamp(), interval '0') + '1 ms');
  END IF;
  RETURN ceil(extract(epoch FROM patience) * 1000);
END $$;

-- A free lock leaves nothing behind but its withdrawn requests, which have a table of their own: a
-- row that comes into being again is one to be attended to.
--
-- A few pages somewhere in the table, because an index on the time would cost every grant more. So
-- many that more rows are on them than were made since the last step, however long their names.
CREATE OR REPLACE FUNCTION @S.sweep() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  pages bigint := pg_relation_size('@S.lock') / current_setting('block_size')::bigint;
  page bigint := floor(random() * greatest(pages - 31, 1));
  ended_before timestamptz := clock_timestamp() - (SELECT sweep_after FROM @S.meta);
  rows tid[];
BEGIN
  SELECT array_agg(ctid) INTO rows FROM (
    SELECT ctid FROM @S.lock
    WHERE ctid >= format('(%s,0)', page)::tid AND ctid < format('(%s,0)', page + 32)::tid
      AND greatest(expires_at, freed_at) < ended_before AND permits IS NULL
    LIMIT 80 FOR UPDATE SKIP LOCKED) free;
  IF rows IS NULL THEN RETURN; END IF;
  -- Nobody can come to wait now, and this sees who came before.
  WITH gone AS (
    DELETE FROM @S.lock k WHERE k.ctid = ANY (rows)
      AND NOT EXISTS (SELECT 1 FROM @S.waiter w
                      WHERE w.lock = k.name AND w.alive_until > clock_timestamp())
      AND NOT EXISTS (SELECT 1 FROM @S.holder h WHERE h.lock = k.name AND h.expires_at >= ended_before)
    RETURNING name, crowd),
  nobody AS (DELETE FROM @S.holder h USING gone WHERE gone.crowd <> 0 AND h.lock = gone.name)
  DELETE FROM @S.waiter w USING gone WHERE w.lock = gone.name;
END $$;

CREATE OR REPLACE FUNCTION @S.recount(a_lock text, a_token bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  sound bigint := @S.sound_token(a_token);
BEGIN
  UPDATE @S.lock SET token = sound WHERE name = a_lock AND token <> sound;
  RETURN sound;
END $$;

-- What a grant may have to do besides; its token then.
CREATE OR REPLACE FUNCTION @S.settle_grant(a_lock text, a_token bigint, a_plain boolean)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT a_plain THEN a_token := @S.recount(a_lock, a_token); END IF;
  IF a_token % 64 = 0 THEN PERFORM @S.sweep(), @S.session_sweep(); END IF;
  RETURN a_token;
END $$;

-- In SQL it would be planned anew at each call.
CREATE OR REPLACE FUNCTION @S.must_attend(a_lock text) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM @S.waiter w WHERE w.lock = a_lock)
    OR EXISTS (SELECT 1 FROM @S.withdrawn w
               WHERE w.lock = a_lock AND w.at > clock_timestamp() - interval '1 hour');
END $$;

-- A lock that is in use, or new, or to be attended to. A bitmap scan would look at the row of each
-- reader that has ever left: only a plain one tells the index that they are dead.
CREATE OR REPLACE FUNCTION @S.acquire_in_turn(
  a_lock text, a_request uuid, a_owner text, a_ttl_ms bigint, a_queue boolean, a_presence bigint,
  a_mode bigint, a_note text, a_pid integer,
  OUT o_outcome text, OUT o_token bigint, OUT o_store uuid, OUT o_ahead text,
  OUT o_recheck_ms bigint, OUT o_fresh boolean, OUT o_slot bigint, OUT o_used bigint, OUT o_set boolean,
  OUT o_lively boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET enable_bitmapscan = off AS $$
DECLARE
  l record;
  beside record;
  is_withdrawn boolean;
  is_plain boolean;
  sound bigint;
  room bigint := 1;
  free_at timestamptz;
BEGIN
  IF NOT a_queue AND a_mode <= 0 THEN
    SELECT owner, kept INTO l FROM @S.lock
      WHERE name = a_lock AND expires_at > clock_timestamp() AND request <> a_request;
    IF FOUND THEN
      o_outcome := 'busy';
      o_ahead := @S.label(l.owner, l.kept);
      RETURN;
    END IF;
  END IF;

  -- The row first, in a statement of its own: what the next ones see is not older than the lock on it.
  LOOP
    SELECT * INTO l FROM @S.lock WHERE name = a_lock FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO @S.lock(name) VALUES (a_lock) ON CONFLICT DO NOTHING;
  END LOOP;
  IF l.expires_at > clock_timestamp() THEN
    IF l.request = a_request AND NOT l.kept THEN
      o_outcome := 'granted';
      o_token := l.token;
      o_store := l.store;
      RETURN;
    END IF;
    o_ahead := @S.label(l.owner, l.kept);
    o_used := 0;
    free_at := l.expires_at;
  ELSE
    IF a_mode > 0 THEN room := coalesce(l.permits, a_mode); END IF;
    IF l.crowd <> 0 THEN
      SELECT token, store, slot, mode INTO o_token, o_store, o_slot, o_used FROM @S.holder
        WHERE request = a_request AND expires_at > clock_timestamp() AND NOT kept;
      IF FOUND THEN
        o_outcome := 'granted';
        IF o_used < 0 THEN o_slot := NULL; END IF;
        RETURN;
      END IF;
      LOOP
        SELECT count(*), min(mode) AS mode, min(@S.label(owner, kept)) AS owner,
               min(expires_at) AS first_end, max(expires_at) AS last_end
          INTO beside FROM @S.holder WHERE lock = a_lock;
        EXIT WHEN beside.count = 0 OR beside.first_end > clock_timestamp();
        PERFORM @S.drop_ended(a_lock);
      END LOOP;
      o_used := beside.mode;
      IF a_mode > 0 THEN room := room - beside.count; END IF;
      -- Who has a place was not refused, and may have been passed over before those came in.
      IF beside.count > 0 AND NOT (a_mode < 0 AND beside.mode < 0
          OR a_mode > 0 AND beside.mode > 0 AND room > 0
             AND (a_mode = beside.mode OR l.permits IS NOT NULL)) THEN
        o_ahead := beside.owner;
        free_at := CASE WHEN a_mode > 0 THEN beside.first_end ELSE beside.last_end END;
      END IF;
    END IF;
    IF o_ahead IS NULL AND l.attend THEN
      -- Whoever released it has told the first waiter. Each NOTIFY wakes all sessions that listen.
      SELECT o_owner, coalesce(o_used, o_mode) INTO o_ahead, o_used
        FROM @S.first_waiter(a_lock, a_request, l.expires_at > '-infinity' OR l.crowd <> 0, a_mode, room,
                            l.permits IS NOT NULL);
    END IF;
  END IF;

  -- What has a place was judged when it came: the permits may have been set since.
  o_used := coalesce(l.permits, o_used);
  IF NOT @S.mix(a_mode, coalesce(o_used, a_mode)) THEN  -- with the rest it would be planned anew
    PERFORM 1 FROM @S.waiter WHERE request = a_request;
    IF NOT FOUND THEN
      o_outcome := 'conflict';
      o_set := l.permits IS NOT NULL;
      RETURN;
    END IF;
  END IF;

  -- It comes after its own release: nobody waits for it any more.
  is_withdrawn := coalesce(l.last_released = a_request, false);
  IF l.attend AND NOT is_withdrawn THEN
    is_withdrawn := EXISTS (SELECT 1 FROM @S.withdrawn WHERE request = a_request);
  END IF;
  IF o_ahead IS NULL AND NOT is_withdrawn AND a_mode <> 0 THEN
    IF l.attend THEN DELETE FROM @S.waiter WHERE request = a_request; END IF;
    IF a_mode > 0 THEN
      SELECT min(n) INTO o_slot FROM (
        SELECT 0::bigint AS n
        UNION ALL SELECT slot + 1 FROM @S.holder WHERE lock = a_lock) candidate
      WHERE NOT EXISTS (SELECT 1 FROM @S.holder h WHERE h.lock = a_lock AND h.slot = n);
    END IF;
    INSERT INTO @S.holder(request, lock, mode, slot, token, store, owner, note, granted_at, expires_at)
      SELECT a_request, a_lock, a_mode, coalesce(o_slot, 0), nextval('@S.token'), m.row_store, a_owner,
             a_note, clock_timestamp(), clock_timestamp() + a_ttl_ms * interval '1 ms'
      FROM @S.meta m
      ON CONFLICT (request) DO UPDATE
        SET mode = excluded.mode, slot = excluded.slot, token = excluded.token, store = excluded.store,
            granted_at = excluded.granted_at, expires_at = excluded.expires_at, kept = false
      RETURNING token, store,
                (SELECT @S.is_plain(token, m.token_ceiling, m.server_start, m.counter_file) FROM @S.meta m)
      INTO o_token, o_store, is_plain;
    IF NOT FOUND THEN PERFORM @S.refuse_empty(); END IF;
    IF NOT is_plain THEN
      sound := @S.sound_token(o_token);
      UPDATE @S.holder SET token = sound WHERE request = a_request AND token <> sound;
      o_token := sound;
    END IF;
    IF l.attend OR l.crowd <> a_mode THEN
      UPDATE @S.lock SET crowd = a_mode, attend = @S.must_attend(a_lock) WHERE name = a_lock;
    END IF;
    IF o_token % 64 = 0 THEN PERFORM @S.sweep(), @S.session_sweep(); END IF;
    o_outcome := 'granted';
    o_fresh := true;
    IF l.attend THEN PERFORM @S.tell_next(a_lock); END IF;
  ELSIF o_ahead IS NULL AND NOT is_withdrawn THEN
    DELETE FROM @S.waiter WHERE request = a_request;
    UPDATE @S.lock k
      SET token = nextval('@S.token'), store = m.row_store, request = a_request, owner = a_owner,
          granted_at = clock_timestamp(),
          expires_at = clock_timestamp() + a_ttl_ms * interval '1 ms', kept = false, note = a_note,
          crowd = 0, attend = @S.must_attend(a_lock)
      FROM @S.meta m WHERE k.name = a_lock
      RETURNING k.token, k.store, @S.is_plain(k.token, m.token_ceiling, m.server_start, m.counter_file)
      INTO o_token, o_store, is_plain;
    IF NOT FOUND THEN PERFORM @S.refuse_empty(); END IF;
    o_outcome := 'granted';
    o_fresh := true;
    IF NOT is_plain OR o_token % 64 = 0 THEN o_token := @S.settle_grant(a_lock, o_token, is_plain); END IF;
  ELSIF a_queue AND NOT is_withdrawn THEN
    o_outcome := 'queued';
    o_recheck_ms := @S.enqueue(a_lock, a_request, a_owner, a_presence, free_at, a_mode, a_note, a_pid);
    o_lively := a_pid IS NOT NULL AND a_mode = 0 AND l.crowd = 0
      AND @S.is_lively(l.granted_at) AND l.no_bells_until < clock_timestamp();
  ELSE
    o_outcome := 'busy';
  END IF;
END $$;

-- To set a search_path costs a sixth of the call: so every name is written in full here.
-- With outcome 'conflict' the lock is in use in the mode `o_used`, or was set so by an operator.
CREATE OR REPLACE FUNCTION @S.acquire(
  a_lock text, a_request uuid, a_owner text, a_ttl_ms bigint, a_queue boolean, a_presence bigint,
  a_mode bigint DEFAULT 0, a_note text DEFAULT '', a_pid integer DEFAULT NULL,
  OUT o_outcome text, OUT o_token bigint, OUT o_store uuid, OUT o_ahead text,
  OUT o_recheck_ms bigint, OUT o_fresh boolean, OUT o_slot bigint, OUT o_used bigint, OUT o_set boolean,
  OUT o_lively boolean)
LANGUAGE plpgsql AS $$
DECLARE
  is_plain boolean;
BEGIN
  IF pg_catalog.num_nulls(a_lock, a_request, a_owner, a_ttl_ms, a_queue, a_mode, a_note) OPERATOR(pg_catalog.>) 0 THEN PERFORM @S.refuse_null(); END IF;
  IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed' THEN PERFORM @S.refuse_isolation(); END IF;
  IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.<>) 'on' THEN PERFORM @S.commit_durably(); END IF;
  UPDATE @S.lock k
    SET token = pg_catalog.nextval('@S.token'), store = m.row_store, request = a_request, owner = a_owner,
        granted_at = pg_catalog.clock_timestamp(),
        expires_at = pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) (a_ttl_ms OPERATOR(pg_catalog.*) interval '1 ms'),
        kept = false, note = a_note
    FROM @S.meta m
    WHERE a_mode OPERATOR(pg_catalog.=) 0 AND k.name OPERATOR(pg_catalog.=) a_lock AND NOT k.attend
      AND k.crowd OPERATOR(pg_catalog.=) 0
      AND k.expires_at OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()
      AND (k.last_released OPERATOR(pg_catalog.=) a_request) IS NOT TRUE
    RETURNING k.token, k.store, @S.is_plain(k.token, m.token_ceiling, m.server_start, m.counter_file)
    INTO o_token, o_store, is_plain;
  IF NOT FOUND THEN
    SELECT t.* FROM @S.acquire_in_turn(a_lock, a_request, a_owner, a_ttl_ms, a_queue, a_presence, a_mode, a_note, a_pid) t
      INTO o_outcome, o_token, o_store, o_ahead, o_recheck_ms, o_fresh, o_slot, o_used, o_set, o_lively;
    RETURN;
  END IF;
  o_outcome := 'granted';
  o_fresh := true;
  IF NOT is_plain OR o_token OPERATOR(pg_catalog.%) 64 OPERATOR(pg_catalog.=) 0 THEN
    o_token := @S.settle_grant(a_lock, o_token, is_plain);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION @S.label(a_owner text, a_kept boolean) RETURNS text LANGUAGE sql IMMUTABLE
RETURN a_owner || CASE WHEN a_kept THEN ' (which has finished; the lock is kept)' ELSE '' END;

CREATE OR REPLACE FUNCTION @S.renew(a_locks text[], a_requests uuid[], a_ttls_ms bigint[]) RETURNS boolean[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i integer;
  done boolean[] := array_fill(false, ARRAY[cardinality(a_locks)]);
BEGIN
  IF num_nulls(a_locks, a_requests, a_ttls_ms) > 0
     OR num_nulls(VARIADIC a_locks) + num_nulls(VARIADIC a_requests) + num_nulls(VARIADIC a_ttls_ms) > 0
     OR cardinality(a_requests) <> cardinality(a_locks) OR cardinality(a_ttls_ms) <> cardinality(a_locks) THEN
    PERFORM @S.refuse_null();
  END IF;
  PERFORM @S.commit_durably();
  FOR i IN SELECT n FROM generate_subscripts(a_locks, 1) n ORDER BY a_locks[n], a_requests[n] LOOP
    UPDATE @S.lock SET expires_at = clock_timestamp() + a_ttls_ms[i] * interval '1 ms'
      WHERE name = a_locks[i] AND request = a_requests[i] AND expires_at > clock_timestamp()
        AND NOT kept;
    IF NOT FOUND THEN
      UPDATE @S.holder SET expires_at = clock_timestamp() + a_ttls_ms[i] * interval '1 ms'
        WHERE request = a_requests[i] AND lock = a_locks[i] AND expires_at > clock_timestamp()
          AND NOT kept;
    END IF;
    done[i] := FOUND;
  END LOOP;
  RETURN done;
END $$;

CREATE OR REPLACE FUNCTION @S.withdraw(a_lock text, a_request uuid) RETURNS void LANGUAGE sql
BEGIN ATOMIC
  INSERT INTO @S.withdrawn VALUES (a_request, a_lock, clock_timestamp()) ON CONFLICT DO NOTHING;
  UPDATE @S.lock SET attend = true WHERE name = a_lock AND NOT attend;
  DELETE FROM @S.withdrawn WHERE at < clock_timestamp() - interval '1 hour';
END;

-- With somebody told to come next it is durable only with that one's grant, or a little later: a
-- crash before may take it back, and the lock is free when the lease would have ended.
CREATE OR REPLACE FUNCTION @S.release_in_turn(
  a_lock text, a_request uuid, a_keep_ms bigint, a_doubtful boolean, a_alone boolean)
RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
  ended_before timestamptz;
  was_released boolean;
  is_free boolean;
  next_one uuid;
  may_be_lazy boolean := a_alone AND NOT a_doubtful;
BEGIN
  IF current_setting('synchronous_commit') <> 'on' THEN PERFORM @S.commit_durably(); END IF;
  -- As in acquire; and one that is not committed yet is waited for.
  LOOP
    SELECT crowd, attend INTO l FROM @S.lock WHERE name = a_lock FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO @S.lock(name) VALUES (a_lock) ON CONFLICT DO NOTHING;
  END LOOP;
  IF a_doubtful THEN PERFORM @S.withdraw(a_lock, a_request); END IF;
  IF l.crowd <> 0 THEN
    IF a_keep_ms > 0 THEN
      UPDATE @S.holder SET kept = true, expires_at = clock_timestamp() + a_keep_ms * interval '1 ms'
        WHERE request = a_request AND lock = a_lock AND expires_at > clock_timestamp() AND NOT kept;
    ELSE
      DELETE FROM @S.holder
        WHERE request = a_request AND lock = a_lock AND expires_at > clock_timestamp() AND NOT kept
        RETURNING expires_at INTO ended_before;
    END IF;
    IF FOUND THEN
      UPDATE @S.lock SET last_released = a_request, freed_at = clock_timestamp() WHERE name = a_lock
        RETURNING attend INTO l.attend;
      IF may_be_lazy AND @S.is_cheap_to_lose(ended_before) THEN
        PERFORM set_config('synchronous_commit', 'off', true);
      END IF;
      IF l.attend AND a_keep_ms <= 0 THEN PERFORM @S.tell_next(a_lock); END IF;
      RETURN true;
    END IF;
  END IF;
  IF a_keep_ms > 0 THEN
    UPDATE @S.lock
      SET kept = true, expires_at = clock_timestamp() + a_keep_ms * interval '1 ms',
          last_released = a_request
      WHERE name = a_lock AND request = a_request AND expires_at > clock_timestamp() AND NOT kept;
    IF FOUND THEN RETURN true; END IF;
  ELSE
    UPDATE @S.lock
      SET request = NULL, expires_at = '-infinity', freed_at = clock_timestamp(),
          last_released = a_request
      WHERE name = a_lock AND request = a_request AND expires_at > clock_timestamp() AND NOT kept;
    IF FOUND THEN
      IF EXISTS (SELECT 1 FROM @S.waiter WHERE lock = a_lock) THEN
        next_one := (@S.first_waiter(a_lock, NULL, true)).o_request;
        -- The next grant makes this durable too, and need not wait for the disk twice.
        IF next_one IS NOT NULL AND may_be_lazy THEN
          PERFORM set_config('synchronous_commit', 'off', true);
        END IF;
      END IF;
      RETURN true;
    END IF;
  END IF;

  SELECT last_released IS NOT DISTINCT FROM a_request, expires_at <= clock_timestamp()
    INTO was_released, is_free FROM @S.lock WHERE name = a_lock;
  IF was_released THEN RETURN true; END IF;
  PERFORM @S.withdraw(a_lock, a_request);
  DELETE FROM @S.waiter WHERE request = a_request;
  IF NOT FOUND THEN RETURN false; END IF;
  IF is_free THEN PERFORM @S.tell_next(a_lock); END IF;
  RETURN true;
END $$;

-- A crash that takes a release back costs the rest of the lease.
CREATE OR REPLACE FUNCTION @S.is_cheap_to_lose(a_expires_at timestamptz) RETURNS boolean LANGUAGE sql
RETURN a_expires_at < clock_timestamp() + interval '1 minute';

CREATE OR REPLACE FUNCTION @S.freed_lazily() RETURNS timestamptz LANGUAGE sql
RETURN CASE set_config('synchronous_commit', 'off', true) WHEN 'off' THEN clock_timestamp() END;

-- As in acquire, every name is written in full. `a_doubtful`: an acquire of this request may still
-- be on its way. `a_alone`: the transaction does nothing else, now or later, that has to be durable.
CREATE OR REPLACE FUNCTION @S.release(
  a_lock text, a_request uuid, a_keep_ms bigint, a_doubtful boolean, a_alone boolean DEFAULT false)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.num_nulls(a_lock, a_request, a_keep_ms, a_doubtful, a_alone) OPERATOR(pg_catalog.>) 0 THEN PERFORM @S.refuse_null(); END IF;
  IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed' THEN PERFORM @S.refuse_isolation(); END IF;
  IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.<>) 'on' THEN PERFORM @S.commit_durably(); END IF;
  IF a_keep_ms OPERATOR(pg_catalog.<=) 0 AND NOT a_doubtful THEN
    UPDATE @S.lock
      SET request = NULL, expires_at = '-infinity', last_released = a_request,
          freed_at = CASE WHEN a_alone AND @S.is_cheap_to_lose(expires_at)
            THEN @S.freed_lazily() ELSE pg_catalog.clock_timestamp() END
      WHERE name OPERATOR(pg_catalog.=) a_lock AND request OPERATOR(pg_catalog.=) a_request
        AND NOT attend AND NOT kept AND expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp();
    IF FOUND THEN RETURN true; END IF;
  END IF;
  RETURN @S.release_in_turn(a_lock, a_request, a_keep_ms, a_doubtful, a_alone);
END $$;

-- NULL: it is done. Else the mode in which the lock is in use, without permits.
CREATE OR REPLACE FUNCTION @S.set_permits(a_lock text, a_permits bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l record;
  used bigint;
BEGIN
  IF a_lock IS NULL THEN PERFORM @S.refuse_null(); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN PERFORM @S.refuse_isolation(); END IF;
  PERFORM @S.commit_durably();
  LOOP
    SELECT * INTO l FROM @S.lock WHERE name = a_lock FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO @S.lock(name) VALUES (a_lock) ON CONFLICT DO NOTHING;
  END LOOP;
  IF a_permits IS NOT NULL THEN
    PERFORM @S.drop_ended(a_lock);
    used := CASE WHEN l.expires_at > clock_timestamp() THEN 0
                 ELSE coalesce((SELECT min(mode) FROM @S.holder WHERE lock = a_lock),
                               (SELECT min(mode) FROM @S.waiter
                                WHERE lock = a_lock AND alive_until > clock_timestamp())) END;
    IF used <= 0 THEN RETURN used; END IF;
  END IF;
  UPDATE @S.lock SET permits = a_permits, crowd = coalesce(a_permits, nullif(crowd, 0), 1),
                     freed_at = clock_timestamp() WHERE name = a_lock;
  PERFORM @S.tell_next(a_lock);
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION @S.force_release(a_lock text, a_seen uuid) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF num_nulls(a_lock, a_seen) > 0 THEN PERFORM @S.refuse_null(); END IF;
  PERFORM @S.commit_durably();
  UPDATE @S.lock SET request = NULL, expires_at = '-infinity', freed_at = clock_timestamp()
    WHERE name = a_lock AND request = a_seen AND expires_at > clock_timestamp();
  IF NOT FOUND THEN
    PERFORM 1 FROM @S.lock WHERE name = a_lock FOR UPDATE;
    DELETE FROM @S.holder
      WHERE request = a_seen AND lock = a_lock AND expires_at > clock_timestamp();
    IF NOT FOUND THEN RETURN false; END IF;
  END IF;
  PERFORM @S.tell_next(a_lock);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION @S.record(a_lock text, a_request uuid, a_key text, a_parameters bytea,
                          a_result bytea) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF num_nulls(a_lock, a_request, a_key, a_parameters, a_result) > 0 THEN PERFORM @S.refuse_null(); END IF;
  PERFORM @S.commit_durably();
  PERFORM 1 FROM @S.lock WHERE name = a_lock AND request = a_request
    AND expires_at > clock_timestamp() AND NOT kept FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM 1 FROM @S.holder WHERE request = a_request AND lock = a_lock
      AND expires_at > clock_timestamp() AND NOT kept FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
  END IF;
  INSERT INTO @S.once VALUES (a_lock, a_key, a_parameters, a_result) ON CONFLICT DO NOTHING;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION @S.rotate(a_row_store uuid, a_session_store uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF num_nulls(a_row_store, a_session_store) > 0 THEN PERFORM @S.refuse_null(); END IF;
  PERFORM @S.commit_durably();
  UPDATE @S.meta SET row_store = a_row_store, session_store = a_session_store;
END $$;

-- Of one lock, or of all: these are two plans.
CREATE OR REPLACE FUNCTION @S.status(a_lock text)
RETURNS TABLE (o_lock text, o_store uuid, o_waits boolean, o_request uuid, o_owner text,
               o_token bigint, o_held_ms bigint, o_remaining_ms bigint, o_kept boolean,
               o_known_as text, o_counted_to bigint, o_mode bigint, o_slot bigint, o_note text,
               o_permits bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  t timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
    WITH names AS (
      SELECT a_lock AS name WHERE a_lock IS NOT NULL
      UNION SELECT l.name FROM @S.lock l WHERE a_lock IS NULL
      UNION SELECT w.lock FROM @S.waiter w WHERE a_lock IS NULL AND w.alive_until > t),
    rows AS (
      SELECT n.name, false AS waits, 0::bigint AS place, l.request, l.owner, l.token,
             l.granted_at, l.expires_at, l.kept, 0::bigint AS mode, 0::bigint AS slot, l.note, l.permits
      FROM names n LEFT JOIN @S.lock l ON l.name = n.name
      UNION ALL
      SELECT h.lock, false, h.token, h.request, h.owner, h.token, h.granted_at, h.expires_at, h.kept,
             h.mode, h.slot, h.note, NULL
      FROM @S.holder h WHERE (a_lock IS NULL OR h.lock = a_lock) AND h.expires_at > t
      UNION ALL
      SELECT w.lock, true, w.place, w.request, w.owner, NULL, NULL, NULL, NULL, w.mode, NULL, w.note, NULL
      FROM @S.waiter w WHERE (a_lock IS NULL OR w.lock = a_lock) AND w.alive_until > t)
    SELECT r.name, m.row_store, r.waits,
           CASE WHEN r.waits OR r.expires_at > t THEN r.request END, r.owner, r.token,
           CASE WHEN r.expires_at > t THEN floor(extract(epoch FROM t - r.granted_at) * 1000)::bigint END,
           CASE WHEN r.expires_at > t THEN ceil(extract(epoch FROM r.expires_at - t) * 1000)::bigint END,
           r.kept, format('SELECT * FROM @S.lock WHERE name = %L', r.name), @S.counted_to(),
           r.mode, r.slot, r.note, r.permits
    FROM rows r, @S.meta m ORDER BY r.name COLLATE "C", r.waits, r.place;
END $$;
)sql";

}  // namespace leasehold::postgres
