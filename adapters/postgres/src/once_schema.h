// The schema of idempotency keys in the user's database, and the functions that every program
// calls.
#pragma once

namespace leasehold::postgres {

inline constexpr int kOnceVersion = 6;

// claim() and store() run with the rights of the schema's owner, so that a role needs no right to
// the table. Their bodies name every schema.
//
// SQLSTATE LH003: wrong input. LH004: the key was used before, with other parameters.
inline constexpr const char* kOnceSchema = R"sql(
CREATE OR REPLACE FUNCTION leasehold_once.version() RETURNS integer LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS 'SELECT @VERSION';

-- Without a result: somebody is at work under the key, in a transaction that has not ended.
CREATE TABLE leasehold_once.result(
  key text COLLATE "C" PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 512),
  parameters bytea NOT NULL CHECK (octet_length(parameters) <= 65536),
  result bytea CHECK (octet_length(result) <= 1048576),
  stored_at timestamptz
);
CREATE INDEX result_stored_at_idx ON leasehold_once.result(stored_at);

CREATE OR REPLACE FUNCTION leasehold_once.complete() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM leasehold_once.result r WHERE r.key = NEW.key AND r.result IS NULL) THEN
    RAISE EXCEPTION 'leasehold: invalid: key ''%'' was claimed, and the transaction has stored no result',
      NEW.key USING ERRCODE = 'LH003', HINT = 'Store one with leasehold_once.store(key, result).';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER complete AFTER INSERT ON leasehold_once.result
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION leasehold_once.complete();

-- The result of earlier; NULL: the caller is the one to work, store() and commit. Waits while
-- another transaction is at work under the key: the insert waits for the row of the other.
-- a_wait: in milliseconds, in place of the session's lock_timeout.
CREATE OR REPLACE FUNCTION leasehold_once.claim(a_key text, a_parameters bytea, a_wait integer DEFAULT NULL)
RETURNS bytea LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  usual text := current_setting('lock_timeout');
  seen record;
BEGIN
  IF a_key IS NULL OR a_parameters IS NULL THEN
    RAISE EXCEPTION 'leasehold: invalid: key and parameters must not be NULL' USING ERRCODE = 'LH003';
  END IF;
  LOOP
    SELECT r.parameters, r.result INTO seen FROM leasehold_once.result r WHERE r.key = a_key;
    EXIT WHEN FOUND;
    IF a_wait IS NOT NULL THEN PERFORM set_config('lock_timeout', greatest(a_wait, 1)::text, true); END IF;
    INSERT INTO leasehold_once.result(key, parameters) VALUES (a_key, a_parameters)
      ON CONFLICT (key) DO NOTHING;
    IF FOUND THEN
      PERFORM set_config('lock_timeout', usual, true);
      RETURN NULL;
    END IF;
  END LOOP;
  IF seen.parameters <> a_parameters THEN
    RAISE EXCEPTION 'leasehold: invalid: idempotency key ''%'' was used before with other parameters', a_key
      USING ERRCODE = 'LH004';
  END IF;
  IF seen.result IS NULL THEN
    RAISE EXCEPTION 'leasehold: invalid: this transaction is at work under key ''%'' already', a_key
      USING ERRCODE = 'LH003';
  END IF;
  PERFORM set_config('lock_timeout', usual, true);
  RETURN seen.result;
END $$;

-- A result that a crash could take back would let its work run twice.
CREATE OR REPLACE FUNCTION leasehold_once.store(a_key text, a_result bytea)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE leasehold_once.result r SET result = a_result, stored_at = clock_timestamp()
    WHERE r.key = a_key AND r.result IS NULL;
  IF NOT FOUND OR a_result IS NULL THEN
    RAISE EXCEPTION 'leasehold: invalid: this transaction is not at work under key ''%'', or gave no result', a_key
      USING ERRCODE = 'LH003';
  END IF;
  PERFORM leasehold_once.commit_durably();
END $$;

-- For the operator: runs with the caller's own rights.
CREATE OR REPLACE FUNCTION leasehold_once.forget(a_age interval) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  removed bigint;
BEGIN
  DELETE FROM leasehold_once.result WHERE stored_at < clock_timestamp() - a_age;
  GET DIAGNOSTICS removed = ROW_COUNT;
  PERFORM leasehold_once.commit_durably();
  RETURN removed;
END $$;
)sql";

}  // namespace leasehold::postgres
