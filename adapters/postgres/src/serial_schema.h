// The serial queue's table and function in the user's database.
#pragma once

namespace leasehold::postgres {

inline constexpr int kSerialVersion = 5;

// A push locks its entity for other pushes, by an advisory lock, and takes its number only then: so
// numbers of one entity become visible in order. A worker locks the entity's first row, and not
// what pushes lock: neither waits for the other.
inline constexpr const char* kSerialSchema = R"sql(
CREATE OR REPLACE FUNCTION leasehold_serial.version() RETURNS integer LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS 'SELECT @VERSION';

CREATE TABLE leasehold_serial.operation(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue text COLLATE "C" NOT NULL CHECK (octet_length(queue) BETWEEN 1 AND 512
    AND queue !~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]'),
  entity text COLLATE "C" NOT NULL CHECK (octet_length(entity) BETWEEN 1 AND 512
    AND entity !~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]'),
  payload text NOT NULL CHECK (octet_length(payload) <= 1048576),
  put_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  due timestamptz NOT NULL DEFAULT '-infinity',
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  set_aside boolean NOT NULL DEFAULT false
);
CREATE INDEX by_entity ON leasehold_serial.operation(queue, entity, id);
CREATE INDEX in_order ON leasehold_serial.operation(queue, id);

CREATE OR REPLACE FUNCTION leasehold_serial.push(a_queue text, a_entity text, a_payload text)
RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  new_id bigint;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(1279611221, (pg_catalog.hashtextextended(
    a_entity, pg_catalog.hashtextextended(a_queue, 0)) & 1023)::integer);
  INSERT INTO leasehold_serial.operation(queue, entity, payload) VALUES (a_queue, a_entity, a_payload)
    RETURNING id INTO new_id;
  PERFORM leasehold_serial.commit_durably();
  RETURN new_id;
END $$;
)sql";

}  // namespace leasehold::postgres
