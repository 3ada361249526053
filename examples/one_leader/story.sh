#!/bin/bash
# story.sh PROGRAM: a frozen leader wakes up after the next one has led, and is refused; a killed one is followed.
set -euo pipefail
program=$1
folder=$(mktemp -d)
leader=
trap '[[ -z $leader ]] || kill -KILL "$leader" 2>/dev/null || true; rm -rf "$folder"' EXIT
locks=$folder/locks.db
data=$folder/schedule.db

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
state_of() { cut -d" " -f3 "/proc/$1/stat"; }
author() { sqlite3 "$data" 'SELECT author FROM schedule'; }

FAULT=freeze "$program" "$locks" "$data" ann >"$folder/ann" 2>&1 &
leader=$!
until [[ $(state_of "$leader") == T ]]; do sleep 0.02; done

# Nobody resigned: bob leads when the lease of the frozen one is over.
expect "$("$program" "$locks" "$data" bob)" "bob leads"
expect "$(author)" bob

kill -CONT "$leader"
status=0
wait "$leader" || status=$?
leader=
expect $status 1
grep -q '^fenced_out: ' "$folder/ann" || { echo "not refused:"; cat "$folder/ann"; exit 1; }
expect "$(author)" bob

# One that was killed while it led keeps the others waiting for its lease, and no longer.
status=0
FAULT=kill "$program" "$locks" "$data" carl || status=$?
expect $status 137
expect "$("$program" "$locks" "$data" dora)" "dora leads"
expect "$(author)" dora
