#!/bin/bash
# story.sh PROGRAM: a frozen clerk wakes up after the seat was sold, and is refused.
set -euo pipefail
program=$1
folder=$(mktemp -d)
clerk=
trap '[[ -z $clerk ]] || kill -KILL "$clerk" 2>/dev/null || true; rm -rf "$folder"' EXIT
locks=$folder/locks.db
data=$folder/plane.db

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
state_of() { cut -d" " -f3 "/proc/$1/stat"; }

FAULT=freeze "$program" "$locks" "$data" alice >"$folder/alice" 2>&1 &
clerk=$!
until [[ $(state_of "$clerk") == T ]]; do sleep 0.02; done

# The lease of the frozen clerk ends, so that the next one gets the lock.
next="Conan O'Brien"
expect "$("$program" "$locks" "$data" "$next")" "sold to $next"

kill -CONT "$clerk"
status=0
wait "$clerk" || status=$?
clerk=
expect $status 1
grep -q '^fenced_out: ' "$folder/alice" || { echo "not refused:"; cat "$folder/alice"; exit 1; }
expect "$(sqlite3 "$data" "SELECT passenger FROM seat")" "$next"
expect "$(sqlite3 "$data" "SELECT refused FROM leasehold_fence")" 1
