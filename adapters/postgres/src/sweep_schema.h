// The part of the fence's schema that forgets old marks: see fence_schema.h.
#pragma once

namespace leasehold::postgres {

// For the operator, but for floors(). The caller goes from page to page, each in a transaction of
// its own: survey() tells what floors are needed, raise_floors() is committed, and only then
// sweep_marks() deletes what they cover. Pages count what is looked at, so that no step is long.
inline constexpr const char* kSweepSchema = R"sql(
CREATE OR REPLACE FUNCTION leasehold_fence.is_old(m leasehold_fence.mark, a_age_ms bigint) RETURNS boolean
LANGUAGE sql STABLE
RETURN leasehold_fence.is_of_tokens(m)
  AND greatest((m).entered_at, (m).read_at) < now() - a_age_ms * interval '1 millisecond';

-- The stores of a page of marks, each with the highest number among those that are old.
CREATE OR REPLACE FUNCTION leasehold_fence.survey(a_after text, a_age_ms bigint)
RETURNS TABLE (store text, highest bigint, last text) LANGUAGE sql STABLE
BEGIN ATOMIC
  WITH page AS (SELECT m FROM leasehold_fence.mark m WHERE m.resource > a_after
                ORDER BY m.resource LIMIT 5000)
  SELECT substr((m).lineage, 1, 32),
         max(leasehold_fence.highest(m)) FILTER (WHERE leasehold_fence.is_old(m, a_age_ms)),
         max((m).resource)
  FROM page GROUP BY 1;
END;

-- From then on all stores are refused that are not among these, unless there was never anything to
-- forget.
CREATE OR REPLACE FUNCTION leasehold_fence.raise_floors(a_stores text[], a_floors bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE leasehold_fence.sweeping SET sweeps = sweeps + 1 WHERE sweeps > 0 OR 0 < ANY (a_floors);
  IF NOT FOUND THEN RETURN; END IF;
  INSERT INTO leasehold_fence.floor AS f
    SELECT u.store, u.floor FROM unnest(a_stores, a_floors) AS u(store, floor) ORDER BY u.store
    ON CONFLICT (store) DO UPDATE SET floor = EXCLUDED.floor WHERE f.floor < EXCLUDED.floor;
  PERFORM leasehold_fence.commit_durably();
END $$;

-- One page: how many marks are gone, and where the next page begins; null after the last. Marks that
-- somebody is inside of are passed over.
CREATE OR REPLACE FUNCTION leasehold_fence.sweep_marks(a_after text, a_age_ms bigint, OUT last text, OUT swept bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT max(p.resource) INTO last FROM (
    SELECT resource FROM leasehold_fence.mark WHERE resource > a_after ORDER BY resource LIMIT 500) p;
  WITH old AS (
    SELECT m.resource FROM leasehold_fence.mark m
    WHERE m.resource > a_after AND m.resource <= last AND leasehold_fence.is_old(m, a_age_ms)
      AND leasehold_fence.is_covered(m)
    FOR UPDATE SKIP LOCKED)
  DELETE FROM leasehold_fence.mark m USING old WHERE m.resource = old.resource;
  GET DIAGNOSTICS swept = ROW_COUNT;
END $$;

-- The same for refusals at resources that have no mark.
CREATE OR REPLACE FUNCTION leasehold_fence.sweep_refusals(a_after text, a_age_ms bigint, OUT last text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT max(p.resource) INTO last FROM (
    SELECT resource FROM leasehold_fence.refusal WHERE resource > a_after ORDER BY resource LIMIT 500) p;
  DELETE FROM leasehold_fence.refusal r
    WHERE r.resource > a_after AND r.resource <= last
      AND r.refused_at < now() - a_age_ms * interval '1 millisecond'
      AND NOT EXISTS (SELECT 1 FROM leasehold_fence.mark m WHERE m.resource = r.resource);
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.admit(a_store text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT leasehold_fence.is_id(a_store) THEN
    PERFORM leasehold_fence.wrong('store must be text of 32 lower-case hexadecimal digits');
  END IF;
  INSERT INTO leasehold_fence.floor VALUES (a_store, 0) ON CONFLICT DO NOTHING;
  PERFORM leasehold_fence.commit_durably();
END $$;

CREATE OR REPLACE FUNCTION leasehold_fence.floors() RETURNS TABLE (store text, floor bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT f.store, f.floor FROM leasehold_fence.floor f ORDER BY f.store COLLATE "C"
$$;
)sql";

}  // namespace leasehold::postgres
