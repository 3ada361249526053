// The SQL of the one counter from which the locks of both kinds draw their tokens.
//
// It is a sequence: nobody waits for it, and what it has given is on disk with the row of the
// grant, which the same transaction writes. Whoever draws has locked the lock's row, or draws again
// when it gets it, so that the tokens of a lock rise in the order of its grants.
//
// Logical replication copies tables, but no sequence. So `token_ceiling` in the table `meta` is at
// or above every token that was ever granted, since before that grant or by the same transaction:
// a token in the upper half of a block of 10000 raises it, so that nobody waits for that. A server
// that has begun anew, or whose sequence is another file or has gone back, begins above the
// ceiling.
#pragma once

namespace leasehold::postgres {

inline constexpr const char* kCounterSchema = R"sql(
CREATE SEQUENCE @S.token AS bigint CACHE 1;

-- Whether the sequence that stood there is the one whose tokens the ceiling is above. What was seen
-- of `meta` must be no younger than the number: each ceiling is 10000 above a number drawn before it.
CREATE OR REPLACE FUNCTION @S.is_sound(a_number bigint, a_ceiling bigint, a_start timestamptz,
                                       a_file oid) RETURNS boolean LANGUAGE sql STABLE
RETURN a_number >= a_ceiling - 10000 AND a_start = pg_postmaster_start_time()
  AND a_file = pg_relation_filenode('@S.token');

-- Whether a token may be granted as it is.
CREATE OR REPLACE FUNCTION @S.is_plain(a_token bigint, a_ceiling bigint, a_start timestamptz,
                                       a_file oid) RETURNS boolean LANGUAGE sql STABLE
RETURN @S.is_sound(a_token - 1, a_ceiling, a_start, a_file) AND a_token <= a_ceiling - 5000;

-- The token, or one in its place, that may be granted by this transaction.
CREATE OR REPLACE FUNCTION @S.sound_token(a_token bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
  begin_at bigint;
BEGIN
  SELECT * INTO m FROM @S.meta;
  IF @S.is_sound(a_token - 1, m.token_ceiling, m.server_start, m.counter_file)
     AND a_token <= m.token_ceiling THEN
    PERFORM 1 FROM @S.meta FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN a_token; END IF;  -- somebody else is raising the ceiling
  END IF;
  SELECT * INTO m FROM @S.meta FOR UPDATE;
  IF NOT @S.is_sound((SELECT last_value FROM @S.token), m.token_ceiling, m.server_start,
                     m.counter_file) THEN
    -- So far above that no number drawn meanwhile is given again.
    begin_at := greatest(m.token_ceiling, (SELECT last_value FROM @S.token)) + 10000;
    PERFORM setval('@S.token', begin_at);
    m.token_ceiling := begin_at + 10000;
    UPDATE @S.meta SET token_ceiling = m.token_ceiling, server_start = pg_postmaster_start_time(),
                       counter_file = pg_relation_filenode('@S.token');
  END IF;
  IF a_token <= m.token_ceiling - 10000 THEN a_token := nextval('@S.token'); END IF;
  IF a_token > m.token_ceiling - 5000 THEN
    UPDATE @S.meta SET token_ceiling = a_token + 10000;
  END IF;
  RETURN a_token;
END $$;

-- No token was above it up to now, and every one drawn later is.
CREATE OR REPLACE FUNCTION @S.counted_to() RETURNS bigint LANGUAGE sql
BEGIN ATOMIC
  SELECT CASE WHEN NOT @S.is_sound(t.last_value, m.token_ceiling, m.server_start, m.counter_file)
              THEN greatest(t.last_value, m.token_ceiling)
              WHEN t.is_called THEN t.last_value
              ELSE t.last_value - 1 END
  FROM @S.token t, @S.meta m;
END;
)sql";

}  // namespace leasehold::postgres
