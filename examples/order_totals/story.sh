#!/bin/bash
# story.sh LEASEHOLD: a machine that stood still wakes up when another one has added up its orders, and is refused.
# Both are on this machine, so that SQLite does for a store of several.
set -euo pipefail
leasehold=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
members=()
finish() {
  for one in "${members[@]}"; do kill -KILL "$one" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap finish EXIT
export LEASEHOLD_STORE=sqlite:$folder/locks.db
data=$folder/orders.db

sql() { sqlite3 -cmd '.timeout 5000' "$data" "$1"; }
state_of() { cut -d" " -f3 "/proc/$1/stat"; }
expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; cat "$folder"/*.messages; exit 1; }; }
member() {  # member NAME
  exec "$leasehold" partitions totals --count 4 --ttl 2s --look-every 100ms --member "$1" -- \
    "$here/worker.py" "$data" 2>"$folder/$1.messages"
}

# Customer n is in partition n; each has ten orders of 1.
sqlite3 "$data" 'PRAGMA journal_mode = wal' >/dev/null
sql 'CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, partition INTEGER, amount INTEGER);
     CREATE TABLE total(customer INTEGER PRIMARY KEY, amount INTEGER);
     WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 39)
       INSERT INTO orders(customer, partition, amount) SELECT n % 4, n % 4, 1 FROM n;
     INSERT INTO total SELECT DISTINCT customer, 0 FROM orders'
"$leasehold" fence install "sqlite:$data" >/dev/null

# The first machine adds up some orders, and stands still with one that it has read.
FAULT=freeze member first &
first=$!
members+=("$first")
until [[ $(state_of "$first") == T ]]; do sleep 0.02; done
worker=$(pgrep -P "$first")
until [[ $(state_of "$worker") == T ]]; do sleep 0.02; done

# Its leases run out, and another one adds up the rest.
member second &
second=$!
members+=("$second")
until [[ $(sql 'SELECT count(*) FROM orders') == 0 ]]; do sleep 0.1; done

# The worker wakes before its member does. What it writes is too old, and refused.
kill -CONT "$worker"
until [[ $(sql 'SELECT coalesce(sum(refused), 0) FROM leasehold_fence') == 1 ]]; do sleep 0.02; done
expect "$(sql 'SELECT group_concat(amount) FROM total')" "10,10,10,10"

kill -CONT "$first"
wait "$first" || true  # 76 if its member woke before the worker had ended with the refusal
grep -q 'fenced_out' "$folder/first.messages" || { echo "not refused:"; cat "$folder/first.messages"; exit 1; }
kill -TERM "$second"
status=0
wait "$second" || status=$?
expect $status 143
expect "$("$leasehold" show totals --json | grep -c '"state": "free"')" 1
