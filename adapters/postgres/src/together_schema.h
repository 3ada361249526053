// The SQL for calls of lease rows that go together: one transaction for many locks.
//
// It does what acquire() and release() decide by their first statement. What that leaves undone
// goes on its own. A row that another transaction has locked is left too, so that nobody waits
// behind a stranger, and two batches cannot block each other. The rows are locked by a statement of
// its own, so that the tokens are drawn when they are.
#pragma once

namespace leasehold::postgres {

inline constexpr const char* kTogetherSchema = R"sql(
-- Of each that is granted: its place among the arguments. It waits for no row of a lock; for one who
-- makes the same name, not long.
CREATE OR REPLACE FUNCTION @S.acquire_many(
  a_locks text[], a_requests uuid[], a_owners text[], a_ttls_ms bigint[], a_notes text[])
RETURNS TABLE (o_place bigint, o_token bigint, o_store uuid)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
  free text[];
  is_plain boolean;
BEGIN
  PERFORM @S.commit_durably();
  INSERT INTO @S.lock(name, attend)
    SELECT n, @S.must_attend(n) FROM unnest(a_locks) n
    WHERE NOT EXISTS (SELECT 1 FROM @S.lock k WHERE k.name = n)
    ORDER BY n
    ON CONFLICT DO NOTHING;
  SELECT array_agg(name) INTO free FROM (
    SELECT name FROM @S.lock
    WHERE name = ANY (a_locks) AND NOT attend AND crowd = 0 AND expires_at <= clock_timestamp()
    ORDER BY name FOR UPDATE SKIP LOCKED) row;
  FOR o_place, o_token, o_store, is_plain IN
    UPDATE @S.lock k
      SET token = nextval('@S.token'), store = m.row_store, request = a.request, owner = a.owner,
          granted_at = clock_timestamp(),
          expires_at = clock_timestamp() + a.ttl_ms * interval '1 ms', kept = false, note = a.note
      FROM @S.meta m, unnest(a_locks, a_requests, a_owners, a_ttls_ms, a_notes)
        WITH ORDINALITY a(lock, request, owner, ttl_ms, note, place)
      WHERE k.name = ANY (free) AND k.name = a.lock AND k.last_released IS DISTINCT FROM a.request
      RETURNING a.place, k.token, k.store,
                @S.is_plain(k.token, m.token_ceiling, m.server_start, m.counter_file)
  LOOP
    IF NOT is_plain OR o_token % 64 = 0 THEN
      o_token := @S.settle_grant(a_locks[o_place], o_token, is_plain);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- If it does nothing but releases that are cheap to lose, its commit does not wait for the disk.
CREATE OR REPLACE FUNCTION @S.release_many(a_locks text[], a_requests uuid[])
RETURNS TABLE (o_place bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held text[];
  is_cheap boolean;
  is_alone boolean := pg_current_xact_id_if_assigned() IS NULL;
BEGIN
  PERFORM @S.commit_durably();
  SELECT array_agg(name), bool_and(cheap) INTO held, is_cheap FROM (
    SELECT k.name, @S.is_cheap_to_lose(k.expires_at) AS cheap
    FROM @S.lock k, unnest(a_locks, a_requests) a(lock, request)
    WHERE k.name = a.lock AND k.request = a.request AND NOT attend AND NOT kept
      AND expires_at > clock_timestamp()
    ORDER BY k.name FOR UPDATE OF k SKIP LOCKED) row;
  IF is_alone AND is_cheap THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  RETURN QUERY
    UPDATE @S.lock k
      SET request = NULL, expires_at = '-infinity', freed_at = clock_timestamp(),
          last_released = k.request
      FROM unnest(a_locks) WITH ORDINALITY a(lock, place)
      WHERE k.name = ANY (held) AND k.name = a.lock
      RETURNING a.place;
END $$;
)sql";

}  // namespace leasehold::postgres
