// The fence's schema in the user's database: the marks, and the functions that every program calls.
#pragma once

namespace leasehold::postgres {

inline constexpr int kFenceVersion = 15;

// Functions that programs call run with the rights of the schema's owner, so that a role needs no
// right to the tables, and cannot lower a mark by mistake. Every function sets its search_path, or
// is bound to what it names when it is made, or names all of it in full: whoever may create
// functions and operators somewhere would act with the caller's rights otherwise.
//
// SQLSTATE LH001: refused. LH002: a guarded table was written without entering. LH003: wrong input.
inline constexpr const char* kFenceSchema = R"sql(
CREATE OR REPLACE FUNCTION leasehold_fence.version() RETURNS integer LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS 'SELECT @VERSION';

-- entered_*: by which transaction. The number alone could come again in another cluster, into which
-- the table was restored. least: from where on an operator has adopted the lineage. Tokens are
-- compared with it until one has written; it stays, so that the mark is never swept. read_*: who has
-- entered to read, while above the token. floor: that of its store when the first came in to read,
-- until somebody writes. was_reset: an operator has let in whoever came first, so that nothing is
-- known any more of the tokens that entered before.
CREATE TABLE leasehold_fence.mark(
  resource text COLLATE "C" PRIMARY KEY,
  lineage text,
  token bigint,
  request text,
  least bigint,
  claim text,
  entered_xact xid8,
  entered_at timestamptz,
  read_token bigint,
  read_request text,
  read_at timestamptz,
  floor bigint,
  was_reset boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- Apart from the mark, so that counting never waits for who has entered.
CREATE TABLE leasehold_fence.refusal(
  resource text COLLATE "C" PRIMARY KEY,
  refused bigint NOT NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- By store: up to which number tokens are refused where there is no mark.
CREATE TABLE leasehold_fence.floor(
  store text COLLATE "C" PRIMARY KEY,
  floor bigint NOT NULL CHECK (floor >= 0)
);

-- One row, which changes whenever a floor rises: that is how a transaction notices it whose
-- snapshot is older.
CREATE TABLE leasehold_fence.sweeping(
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  sweeps bigint NOT NULL DEFAULT 0
);
INSERT INTO leasehold_fence.sweeping DEFAULT VALUES;

CREATE TABLE leasehold_fence.guarded(relation regclass PRIMARY KEY, resource text NOT NULL);

CREATE OR REPLACE FUNCTION leasehold_fence.keep() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'leasehold: invalid: a mark is kept as long as its resource, and never goes down'
    USING ERRCODE = 'LH003', HINT = 'See leasehold fence reset and leasehold fence adopt.';
END $$;

-- The number that all entries up to now have reached at most; null if there was none.
CREATE OR REPLACE FUNCTION leasehold_fence.highest(m leasehold_fence.mark) RETURNS bigint
LANGUAGE sql IMMUTABLE RETURN greatest((m).token, (m).least, (m).floor, (m).read_token);

-- Not a claim, nor what an operator has adopted or reset.
CREATE OR REPLACE FUNCTION leasehold_fence.is_of_tokens(m leasehold_fence.mark) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN (m).claim IS NULL AND (m).least IS NULL AND NOT (m).was_reset
  AND ((m).token IS NOT NULL OR (m).read_token IS NOT NULL);

-- Whether the floor of its store says as much as the mark.
CREATE OR REPLACE FUNCTION leasehold_fence.is_covered(m leasehold_fence.mark) RETURNS boolean
LANGUAGE sql STABLE
RETURN leasehold_fence.is_of_tokens(m)
  AND EXISTS (SELECT 1 FROM leasehold_fence.floor f
              WHERE f.store = substr((m).lineage, 1, 32) AND f.floor >= leasehold_fence.highest(m));

CREATE OR REPLACE FUNCTION leasehold_fence.keep_uncovered() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF leasehold_fence.is_covered(OLD) THEN RETURN OLD; END IF;
  RAISE EXCEPTION 'leasehold: invalid: a mark is kept as long as its resource, or until a sweep has raised the floor of its store'
    USING ERRCODE = 'LH003', HINT = 'See leasehold fence sweep and leasehold fence reset.';
END $$;

-- The triggers of marks and floors. Installing again makes those anew that somebody has dropped or
-- disabled.
CREATE OR REPLACE FUNCTION leasehold_fence.keep_marks() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
BEGIN
  CREATE OR REPLACE TRIGGER keep BEFORE TRUNCATE ON leasehold_fence.mark
    FOR EACH STATEMENT EXECUTE FUNCTION leasehold_fence.keep();
  CREATE OR REPLACE TRIGGER uncovered BEFORE DELETE ON leasehold_fence.mark
    FOR EACH ROW EXECUTE FUNCTION leasehold_fence.keep_uncovered();
  CREATE OR REPLACE TRIGGER stay BEFORE UPDATE OF resource ON leasehold_fence.mark FOR EACH ROW
    WHEN (NEW.resource <> OLD.resource) EXECUTE FUNCTION leasehold_fence.keep();
  -- AFTER: one before would lock the row a second time at each entry. OF: who is inside already and
  -- enters again changes none of these, and does not pay for it.
  CREATE OR REPLACE TRIGGER rise AFTER UPDATE OF lineage, token, least, read_token, floor
    ON leasehold_fence.mark FOR EACH ROW
    WHEN (NEW.lineage = OLD.lineage
          AND (coalesce(NEW.token, NEW.least, 0) < coalesce(OLD.token, OLD.least)
               OR coalesce(greatest(NEW.token, NEW.least, NEW.read_token), 0) < OLD.read_token
               OR coalesce(greatest(NEW.token, NEW.least, NEW.floor), 0) < OLD.floor))
    EXECUTE FUNCTION leasehold_fence.keep();
  CREATE OR REPLACE TRIGGER keep BEFORE DELETE OR TRUNCATE ON leasehold_fence.floor
    FOR EACH STATEMENT EXECUTE FUNCTION leasehold_fence.keep();
  CREATE OR REPLACE TRIGGER rise BEFORE UPDATE ON leasehold_fence.floor FOR EACH ROW
    WHEN (NEW.store <> OLD.store OR NEW.floor < OLD.floor) EXECUTE FUNCTION leasehold_fence.keep();
  CREATE OR REPLACE TRIGGER keep BEFORE DELETE OR TRUNCATE ON leasehold_fence.sweeping
    FOR EACH STATEMENT EXECUTE FUNCTION leasehold_fence.keep();
  CREATE OR REPLACE TRIGGER rise BEFORE UPDATE ON leasehold_fence.sweeping FOR EACH ROW
    WHEN (NEW.one <> OLD.one OR NEW.sweeps < OLD.sweeps) EXECUTE FUNCTION leasehold_fence.keep();
END $$;
SELECT leasehold_fence.keep_marks();

-- Their types as pg_trigger has them: 34 and 42 before a statement's TRUNCATE, and its DELETE; 11
-- before a row's DELETE; 19 and 17 before and after its UPDATE.
CREATE OR REPLACE FUNCTION leasehold_fence.keeps_marks() RETURNS boolean LANGUAGE sql STABLE
RETURN 8 = (SELECT count(*) FROM pg_trigger t
            WHERE t.tgenabled IN ('O', 'A')
              AND (t.tgrelid, t.tgname, t.tgtype, t.tgqual IS NULL, t.tgfoid)
                  IN (('leasehold_fence.mark'::regclass, 'keep', 34, true, 'leasehold_fence.keep()'::regprocedure),
                      ('leasehold_fence.mark'::regclass, 'uncovered', 11, true, 'leasehold_fence.keep_uncovered()'::regprocedure),
                      ('leasehold_fence.mark'::regclass, 'stay', 19, false, 'leasehold_fence.keep()'::regprocedure),
                      ('leasehold_fence.mark'::regclass, 'rise', 17, false, 'leasehold_fence.keep()'::regprocedure),
                      ('leasehold_fence.floor'::regclass, 'keep', 42, true, 'leasehold_fence.keep()'::regprocedure),
                      ('leasehold_fence.floor'::regclass, 'rise', 19, false, 'leasehold_fence.keep()'::regprocedure),
                      ('leasehold_fence.sweeping'::regclass, 'keep', 42, true, 'leasehold_fence.keep()'::regprocedure),
                      ('leasehold_fence.sweeping'::regclass, 'rise', 19, false, 'leasehold_fence.keep()'::regprocedure)));

-- E'' reads the same whatever standard_conforming_strings is.
CREATE OR REPLACE FUNCTION leasehold_fence.is_name(a_text text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN coalesce(octet_length(a_text) BETWEEN 1 AND 512
  AND a_text !~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]', false);
CREATE OR REPLACE FUNCTION leasehold_fence.is_id(a_text text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN coalesce(a_text ~ '^[0-9a-f]{32}$', false);

CREATE OR REPLACE FUNCTION leasehold_fence.wrong(a_what text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'leasehold: invalid: %', a_what USING ERRCODE = 'LH003';
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.check_resource(a_resource text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT leasehold_fence.is_name(a_resource) THEN
    PERFORM leasehold_fence.wrong(
      'resource must be 1 to 512 bytes of text without control characters');
  END IF;
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.check_request(a_request text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT leasehold_fence.is_id(a_request) THEN
    PERFORM leasehold_fence.wrong('request must be text of 32 lower-case hexadecimal digits');
  END IF;
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.is_lineage(a_text text) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN coalesce(a_text ~ '^[0-9a-f]{32}/', false) AND leasehold_fence.is_name(substr(a_text, 34));

CREATE OR REPLACE FUNCTION leasehold_fence.check_token(a_token bigint, a_lineage text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF a_token IS NULL OR a_token < 1 THEN
    PERFORM leasehold_fence.wrong('token must be an integer from 1 to 9223372036854775807');
  END IF;
  IF NOT leasehold_fence.is_lineage(a_lineage) THEN
    PERFORM leasehold_fence.wrong(
      'lineage must be text of 32 lower-case hexadecimal digits, a slash and the lock name');
  END IF;
END $$;

-- What a token is refused for that comes to a mark; null if it may enter.
CREATE OR REPLACE FUNCTION leasehold_fence.objection(m leasehold_fence.mark, a_token bigint, a_lineage text,
                                          a_request text, a_reads boolean, a_single boolean)
RETURNS text LANGUAGE sql IMMUTABLE
RETURN CASE
  WHEN (m).lineage <> a_lineage THEN 'foreign'
  WHEN a_token <= (m).floor THEN 'swept'
  WHEN (m).token IS NULL AND a_token < (m).least THEN 'adopted'
  WHEN a_token < (m).token THEN 'lower'
  WHEN NOT a_reads AND a_token < (m).read_token THEN 'lower'
  WHEN a_token = (m).token AND a_request <> (m).request THEN 'twice'
  WHEN a_token = (m).read_token AND a_request <> (m).read_request THEN 'twice'
  WHEN a_single AND NOT a_reads AND a_token = (m).token THEN 'again'
END;

-- In the words of every fence.
CREATE OR REPLACE FUNCTION leasehold_fence.refuse(a_resource text, a_token bigint, a_lineage text, a_reason text,
                                       a_mark bigint, a_lineage_there text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  said text := format('leasehold: fenced_out: resource ''%s'' refused token %s', a_resource, a_token);
BEGIN
  said := said || CASE a_reason
    WHEN 'foreign' THEN format(' of lineage %s: it follows lineage %s (mark %s). A lineage names the store '
      'and lock that count the tokens, and numbers of two lineages cannot be compared. All who write '
      'must take the lock from one store. If that store was replaced on purpose, run '
      '`leasehold fence adopt URL --lineage ''%s'' --at-least %s %s''%s''`',
      a_lineage, a_lineage_there, a_mark, replace(a_lineage, '''', $q$'\''$q$), a_token,
      CASE WHEN starts_with(a_resource, '-') THEN '-- ' END, replace(a_resource, '''', $q$'\''$q$))
    WHEN 'swept' THEN format(': marks up to %s were swept, so this one is too old to be judged. Take the '
      'lock anew: its next token is higher', a_mark)
    WHEN 'unknown' THEN format(' of store %1$s: marks were swept here, and none of this store was known then. '
      'If its tokens are to be let in, an operator runs `leasehold fence admit URL %1$s`', left(a_lineage, 32))
    WHEN 'adopted' THEN format(': its lineage was adopted from token %s on, and this one is lower', a_mark)
    WHEN 'lower' THEN format(': its mark is %s, so another holder has entered since', a_mark)
    WHEN 'again' THEN format(': its mark is %s already, and with single entry a token enters only one time', a_mark)
    ELSE format(': its mark is %s from another request id; the store has granted this number twice', a_mark) END;
  RAISE EXCEPTION USING ERRCODE = 'LH001', MESSAGE = said,
    DETAIL = format('offered=%s mark=%s reason=%s lineage=%s', a_token, a_mark, a_reason, a_lineage_there);
END $$;

-- For a mark whose row is locked. The number that it tells is the one that the token was compared with.
CREATE OR REPLACE FUNCTION leasehold_fence.judge(m leasehold_fence.mark, a_token bigint, a_lineage text,
                                      a_request text, a_reads boolean, a_single boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  reason text := leasehold_fence.objection(m, a_token, a_lineage, a_request, a_reads, a_single);
BEGIN
  IF m.claim IS NOT NULL THEN
    PERFORM leasehold_fence.wrong('this resource is used with claims, not with tokens');
  END IF;
  IF reason IS NULL THEN RETURN; END IF;
  PERFORM leasehold_fence.refuse(m.resource, a_token, a_lineage, reason,
    CASE WHEN reason = 'twice' THEN a_token
         WHEN reason = 'swept' THEN m.floor
         WHEN reason = 'adopted' THEN m.least
         WHEN reason = 'lower' AND a_reads THEN m.token
         ELSE coalesce(leasehold_fence.highest(m), 0) END, m.lineage);
END $$;

-- The floor of a store, where there was no mark. It is asked only when the row is there that keeps
-- all others out. Then a mark that was swept has been deleted before, and its floor is committed.
-- READ COMMITTED sees it; an older snapshot may not, and fails by the lock. That is let go of at
-- once, so that no sweep waits for this transaction; FOR KEY SHARE would overlook the change.
CREATE OR REPLACE FUNCTION leasehold_fence.floor_of(a_store text, OUT is_unknown boolean, OUT floor bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    BEGIN
      PERFORM 1 FROM leasehold_fence.sweeping FOR SHARE;
      RAISE EXCEPTION USING ERRCODE = 'LH000';
    EXCEPTION WHEN SQLSTATE 'LH000' THEN NULL;
    END;
  END IF;
  SELECT s.sweeps > 0 AND f.store IS NULL, coalesce(f.floor, 0) INTO STRICT is_unknown, floor
    FROM leasehold_fence.sweeping s LEFT JOIN leasehold_fence.floor f ON f.store = a_store;
END $$;

-- The floor below this token, or a refusal.
CREATE OR REPLACE FUNCTION leasehold_fence.floor_below(a_resource text, a_token bigint, a_lineage text)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  there record;
BEGIN
  SELECT * INTO there FROM leasehold_fence.floor_of(left(a_lineage, 32));
  IF there.is_unknown THEN
    PERFORM leasehold_fence.refuse(a_resource, a_token, a_lineage, 'unknown', 0, '');
  END IF;
  IF a_token <= there.floor THEN
    PERFORM leasehold_fence.refuse(a_resource, a_token, a_lineage, 'swept', there.floor, '');
  END IF;
  RETURN there.floor;
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.check_entry(a_resource text, a_token bigint, a_lineage text,
                                            a_request text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM leasehold_fence.check_resource(a_resource);
  PERFORM leasehold_fence.check_token(a_token, a_lineage);
  PERFORM leasehold_fence.check_request(a_request);
END $$;

-- Inserts the first mark, or waits for the row, and for all who are inside to read, and compares
-- with what is then there; a row that refuses is locked too. A mark may be swept in between.
CREATE OR REPLACE FUNCTION leasehold_fence.enter_anew(a_resource text, a_token bigint, a_lineage text,
                                           a_request text, a_once boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m leasehold_fence.mark;
BEGIN
  PERFORM leasehold_fence.check_entry(a_resource, a_token, a_lineage, a_request);
  LOOP
    INSERT INTO leasehold_fence.mark (resource, lineage, token, request, entered_xact, entered_at)
      VALUES (a_resource, a_lineage, a_token, a_request, pg_current_xact_id(), now())
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      PERFORM leasehold_fence.floor_below(a_resource, a_token, a_lineage);
      RETURN;
    END IF;
    SELECT * INTO m FROM leasehold_fence.mark WHERE resource = a_resource FOR UPDATE;
    EXIT WHEN FOUND;
  END LOOP;
  PERFORM leasehold_fence.judge(m, a_token, a_lineage, a_request, false, a_once);
  UPDATE leasehold_fence.mark
    SET lineage = a_lineage, token = a_token, request = a_request, floor = NULL, read_token = NULL,
        read_request = NULL, entered_xact = pg_current_xact_id(), entered_at = now()
    WHERE resource = a_resource;
END $$;

-- The holder that is inside already comes most often, and what equals the mark needs no other check;
-- then the next holder of the same lock, of which only the request id is new.
-- To set search_path would cost it much: each operator is named in full instead.
--
-- It always writes: a REPEATABLE READ transaction that waited with an old snapshot must fail, and
-- does so only if the row has changed.
--
-- Who reads shares the row by FOR KEY SHARE, beside which an UPDATE is possible. The holder that is
-- inside already need not exclude them: as long as nobody has read with a higher token, they are
-- itself. The next holder must, by FOR UPDATE.
CREATE OR REPLACE FUNCTION leasehold_fence.enter(resource text, token bigint, lineage text, request text,
                                      single_entry boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
BEGIN
  IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.<>) 'on' THEN
    PERFORM leasehold_fence.commit_durably();
  END IF;
  UPDATE leasehold_fence.mark m
    SET entered_xact = pg_catalog.pg_current_xact_id(), entered_at = pg_catalog.now()
    WHERE m.resource OPERATOR(pg_catalog.=) enter.resource
      AND m.token OPERATOR(pg_catalog.=) enter.token
      AND m.request OPERATOR(pg_catalog.=) enter.request
      AND m.lineage OPERATOR(pg_catalog.=) enter.lineage
      AND m.claim IS NULL AND m.read_token IS NULL AND NOT coalesce(enter.single_entry, false);
  IF FOUND THEN RETURN; END IF;
  PERFORM 1 FROM leasehold_fence.mark m WHERE m.resource OPERATOR(pg_catalog.=) enter.resource FOR UPDATE;
  IF FOUND THEN
    UPDATE leasehold_fence.mark m
      SET token = enter.token, request = enter.request, floor = NULL, read_token = NULL,
          read_request = NULL,
          entered_xact = pg_catalog.pg_current_xact_id(), entered_at = pg_catalog.now()
      WHERE m.resource OPERATOR(pg_catalog.=) enter.resource
        AND m.token OPERATOR(pg_catalog.<) enter.token
        AND (m.read_token IS NULL OR m.read_token OPERATOR(pg_catalog.<) enter.token)
        AND m.lineage OPERATOR(pg_catalog.=) enter.lineage
        AND m.claim IS NULL AND enter.request OPERATOR(pg_catalog.~) '^[0-9a-f]{32}$';
    IF FOUND THEN RETURN; END IF;
  END IF;
  PERFORM leasehold_fence.enter_anew(enter.resource, enter.token, enter.lineage, enter.request,
                                     coalesce(enter.single_entry, false));
END $$;

-- Where a holder that has entered before comes in again by a plain UPDATE, which costs half of a
-- function. Whoever may call enter() could do the same with the values that marks() shows; who may
-- not, may not update it either.
CREATE VIEW leasehold_fence.entrance AS
  SELECT resource, lineage, token, request, entered_xact, entered_at
  FROM leasehold_fence.mark WHERE claim IS NULL AND token IS NOT NULL AND read_token IS NULL;
DO $entrance$ BEGIN
  IF has_function_privilege('public', 'leasehold_fence.enter(text, bigint, text, text, boolean)',
                            'EXECUTE') THEN
    GRANT SELECT, UPDATE (entered_xact, entered_at) ON leasehold_fence.entrance TO PUBLIC;
  END IF;
END $entrance$;

-- To read beside others. What is not known yet is written: the mark, if this is the highest token
-- that reads; and once a minute that somebody has read, for the sweep. Called by itself before, it
-- has done so, and then only shares the row.
CREATE OR REPLACE FUNCTION leasehold_fence.enter_to_read(resource text, token bigint, lineage text, request text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  m leasehold_fence.mark;
  is_known boolean;
BEGIN
  PERFORM leasehold_fence.check_entry(enter_to_read.resource, enter_to_read.token, enter_to_read.lineage,
                                      enter_to_read.request);
  LOOP
    SELECT * INTO m FROM leasehold_fence.mark WHERE resource = enter_to_read.resource FOR KEY SHARE;
    IF NOT FOUND THEN
      INSERT INTO leasehold_fence.mark (resource, lineage, read_token, read_request, read_at)
        VALUES (enter_to_read.resource, enter_to_read.lineage, enter_to_read.token, enter_to_read.request, now())
        ON CONFLICT DO NOTHING;
      CONTINUE WHEN NOT FOUND;
      UPDATE leasehold_fence.mark
        SET floor = nullif(leasehold_fence.floor_below(enter_to_read.resource, enter_to_read.token,
                                                       enter_to_read.lineage), 0)
        WHERE resource = enter_to_read.resource;
      EXIT;
    END IF;
    PERFORM leasehold_fence.judge(m, enter_to_read.token, enter_to_read.lineage, enter_to_read.request, true, false);
    is_known := coalesce(greatest(m.token, m.read_token), 0) >= enter_to_read.token;
    IF is_known AND greatest(m.entered_at, m.read_at) > now() - interval '1 minute' THEN RETURN; END IF;
    IF is_known THEN
      UPDATE leasehold_fence.mark SET read_at = now() WHERE resource = enter_to_read.resource;
      EXIT;
    END IF;
    -- Another may have raised it meanwhile, or claimed what was reset.
    UPDATE leasehold_fence.mark
      SET lineage = enter_to_read.lineage, read_token = enter_to_read.token,
          read_request = enter_to_read.request, read_at = now()
      WHERE resource = enter_to_read.resource AND claim IS NULL
        AND lineage IS NOT DISTINCT FROM m.lineage AND read_token IS NOT DISTINCT FROM m.read_token;
    EXIT WHEN FOUND;
  END LOOP;
  PERFORM leasehold_fence.commit_durably();
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.claim(resource text, request text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM leasehold_fence.check_resource(claim.resource);
  PERFORM leasehold_fence.check_request(claim.request);
  INSERT INTO leasehold_fence.mark AS m (resource, claim) VALUES (claim.resource, claim.request)
    ON CONFLICT (resource) DO UPDATE SET claim = claim.request WHERE m.lineage IS NULL;
  IF NOT FOUND THEN
    PERFORM leasehold_fence.wrong('this resource is used with tokens, not with claims');
  END IF;
  PERFORM leasehold_fence.commit_durably();
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.confirm(resource text, request text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM leasehold_fence.check_resource(confirm.resource);
  PERFORM leasehold_fence.check_request(confirm.request);
  UPDATE leasehold_fence.mark m SET entered_xact = pg_current_xact_id(), entered_at = now()
    WHERE m.resource = confirm.resource AND m.claim = confirm.request;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'leasehold: fenced_out: resource ''%'' refused request %: another request has claimed it since',
      confirm.resource, confirm.request USING ERRCODE = 'LH001';
  END IF;
  PERFORM leasehold_fence.commit_durably();
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.count_refusal(resource text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM leasehold_fence.check_resource(count_refusal.resource);
  INSERT INTO leasehold_fence.refusal AS r (resource, refused) VALUES (count_refusal.resource, 1)
    ON CONFLICT (resource) DO UPDATE SET refused = r.refused + 1, refused_at = now();
  PERFORM leasehold_fence.commit_durably();
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.marks()
RETURNS TABLE (resource text, lineage text, token bigint, request text, refused bigint, claim text,
               read_token bigint, read_request text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(m.resource, r.resource), m.lineage, m.token, m.request, coalesce(r.refused, 0),
         m.claim, m.read_token, m.read_request
  FROM leasehold_fence.mark m FULL JOIN leasehold_fence.refusal r ON r.resource = m.resource
  ORDER BY coalesce(m.resource, r.resource) COLLATE "C"
$$;

-- For the operator: these run with the caller's own rights.
CREATE OR REPLACE FUNCTION leasehold_fence.forget(a_resource text, a_lineage text, a_least bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE leasehold_fence.mark
    SET lineage = a_lineage, least = a_least, token = NULL, request = NULL, claim = NULL,
        read_token = NULL, read_request = NULL, floor = NULL,
        was_reset = was_reset OR a_lineage IS NULL
    WHERE resource = a_resource;
  PERFORM leasehold_fence.commit_durably();
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.adopt(a_resource text, a_lineage text, a_least bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m leasehold_fence.mark;
  is_new boolean;
  covered bigint;
BEGIN
  PERFORM leasehold_fence.check_resource(a_resource);
  PERFORM leasehold_fence.check_token(a_least, a_lineage);
  LOOP
    INSERT INTO leasehold_fence.mark(resource) VALUES (a_resource) ON CONFLICT DO NOTHING;
    is_new := FOUND;
    SELECT * INTO m FROM leasehold_fence.mark WHERE resource = a_resource FOR UPDATE;
    EXIT WHEN FOUND;
  END LOOP;
  IF is_new THEN
    SELECT f.floor INTO covered FROM leasehold_fence.floor_of(left(a_lineage, 32)) f;
    IF a_least <= covered THEN
      PERFORM leasehold_fence.wrong(format('resource ''%s'' has no mark, and marks of this store up to '
        '%s were swept; adopting from %s on would let stale holders in', a_resource, covered, a_least));
    END IF;
  END IF;
  IF m.lineage = a_lineage AND leasehold_fence.highest(m) = a_least THEN RETURN; END IF;
  IF m.lineage = a_lineage AND leasehold_fence.highest(m) > a_least THEN
    PERFORM leasehold_fence.wrong(format('resource ''%s'' follows this lineage already and its mark '
      'is %s; going back to %s would let stale holders in', a_resource, leasehold_fence.highest(m), a_least));
  END IF;
  PERFORM leasehold_fence.forget(a_resource, a_lineage, a_least);
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.reset(a_resource text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM 1 FROM leasehold_fence.mark WHERE resource = a_resource FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM leasehold_fence.wrong(
      format('the fence knows no resource ''%s''; nothing was reset', a_resource));
  END IF;
  PERFORM leasehold_fence.forget(a_resource, NULL, NULL);
END $$;

-- The trigger of a guarded table. Its argument is the resource.
CREATE OR REPLACE FUNCTION leasehold_fence.guard()
RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM leasehold_fence.mark m WHERE m.resource = TG_ARGV[0]
                 AND m.entered_xact = pg_current_xact_id_if_assigned() AND m.entered_at = now()) THEN
    RAISE EXCEPTION 'leasehold: not_entered: table %.% is written only in a transaction that has entered the fence of resource ''%''',
      TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0]
      USING ERRCODE = 'LH002', HINT = 'Begin with SELECT leasehold_fence.enter(resource, token, lineage, request).';
  END IF;
  IF TG_LEVEL = 'STATEMENT' THEN RETURN NULL; END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $$;

-- A statement that names the parent does not fire the triggers of the child.
CREATE OR REPLACE FUNCTION leasehold_fence.has_parent(a_relation regclass) RETURNS boolean LANGUAGE sql STABLE
RETURN EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = a_relation);

-- A table, and all below it, with the triggers that each needs as pg_trigger has their type: 62 for
-- statements (INSERT, UPDATE, DELETE, TRUNCATE), 31 for rows (INSERT, UPDATE, DELETE), 34 for TRUNCATE.
-- A statement's trigger sees only statements that name its own table, so that what has or may have
-- another above it needs one for each row. A partition inherits that, also if it is made later.
-- Temporary tables concern nobody but their own session.
CREATE OR REPLACE FUNCTION leasehold_fence.family(a_relation regclass)
RETURNS TABLE (relation regclass, inherits boolean, needs integer[]) LANGUAGE sql STABLE
BEGIN ATOMIC
  WITH RECURSIVE member(relation) AS (
    SELECT a_relation::oid
    UNION SELECT i.inhrelid FROM member m JOIN pg_inherits i ON i.inhparent = m.relation)
  SELECT c.oid::regclass, c.relispartition,
         CASE WHEN c.relispartition OR c.relkind = 'f' THEN ARRAY[31]
              WHEN c.relkind = 'p' OR c.oid <> a_relation THEN ARRAY[31, 34]
              ELSE ARRAY[62] END
  FROM member m JOIN pg_class c ON c.oid = m.relation
  WHERE c.relpersistence <> 't' OR c.oid = a_relation;
END;

-- As pg_trigger has the argument of guard().
CREATE OR REPLACE FUNCTION leasehold_fence.argument(a_resource text) RETURNS bytea LANGUAGE sql IMMUTABLE
RETURN convert_to(a_resource, 'UTF8') || decode('00', 'hex');

CREATE OR REPLACE FUNCTION leasehold_fence.is_armed(a_relation regclass, a_resource text)
RETURNS boolean LANGUAGE sql STABLE
RETURN NOT leasehold_fence.has_parent(a_relation) AND NOT EXISTS (
  SELECT 1 FROM leasehold_fence.family(a_relation) f CROSS JOIN unnest(f.needs) AS n(type)
  WHERE NOT EXISTS (
    SELECT 1 FROM pg_trigger t
    WHERE t.tgrelid = f.relation AND t.tgtype = n.type AND t.tgenabled IN ('O', 'A')
      AND t.tgfoid = 'leasehold_fence.guard()'::regprocedure AND t.tgqual IS NULL AND t.tgattr::text = ''
      AND t.tgargs = leasehold_fence.argument(a_resource)));

-- Other guarded tables that have a table in common with this one.
CREATE OR REPLACE FUNCTION leasehold_fence.sharers(a_relation regclass)
RETURNS TABLE (relation regclass, resource text, shared regclass) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT g.relation, g.resource, f.relation
  FROM leasehold_fence.guarded g CROSS JOIN LATERAL leasehold_fence.family(g.relation) s
    JOIN leasehold_fence.family(a_relation) f ON f.relation = s.relation
  WHERE g.relation <> a_relation;
END;

-- Leaves the guards of others where they share a table with this one.
CREATE OR REPLACE FUNCTION leasehold_fence.disarm(a_relation regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  FOR t IN SELECT g.tgname, f.relation FROM leasehold_fence.family(a_relation) f
             JOIN pg_trigger g ON g.tgrelid = f.relation
           WHERE g.tgparentid = 0
             AND (g.tgfoid = 'leasehold_fence.guard()'::regprocedure
                  OR g.tgname IN ('leasehold_fence_guard', 'leasehold_fence_truncate'))
             AND NOT (g.tgfoid = 'leasehold_fence.guard()'::regprocedure AND EXISTS (
                        SELECT 1 FROM leasehold_fence.sharers(a_relation) s WHERE s.shared = f.relation
                          AND g.tgargs = leasehold_fence.argument(s.resource))) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.relation);
  END LOOP;
  DELETE FROM leasehold_fence.guarded WHERE relation = a_relation;
  PERFORM leasehold_fence.commit_durably();
END $$;

-- A table has the guard of one resource, or whoever has entered one of two could write what the
-- other guards.
CREATE OR REPLACE FUNCTION leasehold_fence.check_unshared(a_relation regclass, a_resource text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  other record;
BEGIN
  FOR other IN SELECT relation, resource, shared FROM leasehold_fence.sharers(a_relation) LOOP
    IF other.relation = other.shared THEN
      PERFORM leasehold_fence.wrong(format('table %s is guarded by resource ''%s'' already; remove that '
        'guard first', other.relation, other.resource));
    ELSIF other.resource <> a_resource THEN
      PERFORM leasehold_fence.wrong(format('table %s is part of table %s too, which is guarded by '
        'resource ''%s''; guard both by one resource, or remove that guard first', other.shared,
        other.relation, other.resource));
    END IF;
  END LOOP;
END $$;

-- The lock on the list makes those who guard at the same time see one another; that on the table
-- and all below it keeps others from attaching and detaching. What there is, is asked only then.
CREATE OR REPLACE FUNCTION leasehold_fence.guard_table(a_relation regclass, a_resource text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  guarding text;
  t record;
BEGIN
  PERFORM leasehold_fence.check_resource(a_resource);
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    PERFORM leasehold_fence.wrong('guarding needs a READ COMMITTED transaction: another one does not see '
      'what others have attached to the table meanwhile');
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE c.oid = a_relation AND c.relkind IN ('r', 'p')
                   AND n.nspname NOT IN ('leasehold_fence', 'pg_catalog', 'information_schema')) THEN
    PERFORM leasehold_fence.wrong(format('%s is not a table of yours that can be guarded', a_relation));
  END IF;
  LOCK TABLE leasehold_fence.guarded IN SHARE ROW EXCLUSIVE MODE;
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', a_relation);
  IF leasehold_fence.has_parent(a_relation) THEN
    PERFORM leasehold_fence.wrong(format('table %s is part of another table, and writes through that one '
      'would pass its guard; guard the whole', a_relation));
  END IF;
  SELECT resource INTO guarding FROM leasehold_fence.guarded WHERE relation = a_relation;
  IF leasehold_fence.is_armed(a_relation, guarding) THEN
    IF guarding = a_resource THEN RETURN; END IF;
    PERFORM leasehold_fence.wrong(format('table %s is guarded by resource ''%s'' already; remove that '
      'guard first', a_relation, guarding));
  END IF;
  PERFORM leasehold_fence.check_unshared(a_relation, a_resource);
  PERFORM leasehold_fence.disarm(a_relation);
  FOR t IN SELECT f.relation, n.type FROM leasehold_fence.family(a_relation) f
             CROSS JOIN unnest(f.needs) AS n(type) WHERE NOT f.inherits LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE %s ON %s FOR EACH %s'
      ' EXECUTE FUNCTION leasehold_fence.guard(%L)',
      CASE t.type WHEN 34 THEN 'leasehold_fence_truncate' ELSE 'leasehold_fence_guard' END,
      CASE t.type WHEN 34 THEN 'TRUNCATE' WHEN 31 THEN 'INSERT OR UPDATE OR DELETE'
        ELSE 'INSERT OR UPDATE OR DELETE OR TRUNCATE' END,
      t.relation, CASE t.type WHEN 31 THEN 'ROW' ELSE 'STATEMENT' END, a_resource);
  END LOOP;
  INSERT INTO leasehold_fence.guarded VALUES (a_relation, a_resource);
  IF NOT leasehold_fence.is_armed(a_relation, a_resource) THEN
    PERFORM leasehold_fence.wrong(format('table %s was not guarded: something changes the triggers on it '
      'or below it', a_relation));
  END IF;
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.unguard_table(a_relation regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  LOCK TABLE leasehold_fence.guarded IN SHARE ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT 1 FROM leasehold_fence.guarded WHERE relation = a_relation) THEN
    PERFORM leasehold_fence.wrong(format('table %s is not guarded', a_relation));
  END IF;
  PERFORM leasehold_fence.disarm(a_relation);
END $$;

-- It sets no search_path, so that a table has the name by which the caller knows it.
CREATE OR REPLACE FUNCTION leasehold_fence.guards() RETURNS TABLE (table_name text, resource text, armed boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT g.relation::text, g.resource, leasehold_fence.is_armed(g.relation, g.resource)
  FROM leasehold_fence.guarded g JOIN pg_class c ON c.oid = g.relation
  ORDER BY g.relation::text COLLATE "C";
END;
)sql";

}  // namespace leasehold::postgres
