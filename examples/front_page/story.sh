#!/bin/bash
# story.sh PROGRAM: one renders and is killed; of those who wait one renders, and all have its page.
set -euo pipefail
program=$1
folder=$(mktemp -d)
first=
trap '[[ -z $first ]] || kill -KILL "$first" 2>/dev/null || true; rm -rf "$folder"' EXIT
locks=$folder/locks.db
cache=$folder/cache.db

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
state_of() { cut -d" " -f3 "/proc/$1/stat"; }
rendered() { sqlite3 "$cache" 'SELECT count(*) FROM rendering'; }

FAULT=hang "$program" "$locks" "$cache" ann &
first=$!
until [[ $(state_of "$first") == T ]]; do sleep 0.02; done

waiting=()
for name in bob carl dora; do
  "$program" "$locks" "$cache" "$name" >"$folder/$name" & waiting+=($!)
done
kill -KILL "$first"
for one in "${waiting[@]}"; do wait "$one"; done
first=

expect "$(rendered)" 2
expect "$(sort -u "$folder/bob" "$folder/carl" "$folder/dora" | wc -l)" 1
expect "$("$program" "$locks" "$cache" eve)" "$(cat "$folder/bob")"
expect "$(rendered)" 2
