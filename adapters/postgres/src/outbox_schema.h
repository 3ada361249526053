// The outbox's table and functions in the user's database.
#pragma once

#include "leasehold/outbox.h"

namespace leasehold::postgres {

inline constexpr int kOutboxVersion = 6;

static_assert(kMaxOutboxPayload == 1048576, "the schema says so too");

// put() runs with the rights of its owner, so that a role that puts needs no right to the
// table. It checks and refuses with the fence's own functions.
//
// The two numbers of the advisory lock: one that stands for this outbox, and the key's hash. Keys
// of one hash wait for one another needlessly, and no more. Unlike the lock of a row it leaves
// nothing to clean up, and does not fail in a REPEATABLE READ transaction.
inline constexpr const char* kOutboxSchema = R"sql(
CREATE OR REPLACE FUNCTION leasehold_outbox.version() RETURNS integer LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS 'SELECT @VERSION';

CREATE TABLE leasehold_outbox.message(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text COLLATE "C" NOT NULL,
  topic text NOT NULL,
  payload text NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL UNIQUE,
  put_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  set_aside boolean NOT NULL DEFAULT false,
  skipped boolean NOT NULL DEFAULT false,
  done_at timestamptz
);
CREATE INDEX waiting ON leasehold_outbox.message(id) WHERE done_at IS NULL;
CREATE INDEX by_key ON leasehold_outbox.message(key, id) WHERE done_at IS NULL;
CREATE INDEX set_aside ON leasehold_outbox.message(key) WHERE set_aside AND done_at IS NULL;
CREATE INDEX done ON leasehold_outbox.message(done_at) WHERE done_at IS NOT NULL;

CREATE OR REPLACE FUNCTION leasehold_outbox.put(a_key text, a_topic text, a_payload text,
                                     a_idempotency_key text DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  new_id bigint;
BEGIN
  IF NOT leasehold_fence.is_name(a_key) THEN
    PERFORM leasehold_fence.wrong('outbox key must be 1 to 512 bytes of text without control characters');
  END IF;
  IF NOT leasehold_fence.is_name(a_topic) THEN
    PERFORM leasehold_fence.wrong('outbox topic must be 1 to 512 bytes of text without control characters');
  END IF;
  IF a_idempotency_key IS NOT NULL AND NOT leasehold_fence.is_name(a_idempotency_key) THEN
    PERFORM leasehold_fence.wrong('idempotency key must be 1 to 512 bytes of text without control characters');
  END IF;
  IF a_payload IS NULL OR octet_length(a_payload) > 1048576 THEN
    PERFORM leasehold_fence.wrong('outbox payload must be text of at most 1048576 bytes');
  END IF;
  PERFORM pg_advisory_xact_lock(1279611220, (hashtextextended(a_key, 0) & 1023)::integer);
  INSERT INTO leasehold_outbox.message(key, topic, payload, idempotency_key)
    VALUES (a_key, a_topic, a_payload, coalesce(a_idempotency_key, gen_random_uuid()::text))
    ON CONFLICT (idempotency_key) DO NOTHING
    RETURNING id INTO new_id;
  IF new_id IS NULL THEN
    PERFORM leasehold_fence.wrong(
      format('the idempotency key ''%s'' is in the outbox already', a_idempotency_key));
  END IF;
  PERFORM leasehold_fence.commit_durably();
  RETURN new_id;
END $$;
)sql";

}  // namespace leasehold::postgres
