#!/bin/bash
# story.sh PROGRAM: nothing is sold twice, although one till slept over its write and many race.
set -euo pipefail
program=$1
folder=$(mktemp -d)
till=
trap '[[ -z $till ]] || kill -KILL "$till" 2>/dev/null || true; rm -rf "$folder"' EXIT
data=$folder/stock.db

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
state_of() { cut -d" " -f3 "/proc/$1/stat"; }

FAULT=freeze "$program" "$data" 10 >"$folder/slow" &
till=$!
until [[ $(state_of "$till") == T ]]; do sleep 0.02; done
expect "$("$program" "$data" 50)" "left 50, conflicts 0"
kill -CONT "$till"
wait "$till"
till=
expect "$(cat "$folder/slow")" "left 40, conflicts 1"

race() { for _ in 1 2 3 4 5 6 7 8 9 10; do "$program" "$data" 2 >/dev/null; done; }
race & first=$!
race & second=$!
wait $first
wait $second
expect "$(sqlite3 "$data" 'SELECT amount FROM stock')" 0

said=$("$program" "$data" 1 2>&1) && { echo "sold what is not there"; exit 1; }
expect "$said" "invalid: not enough in stock"
