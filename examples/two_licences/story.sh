#!/bin/bash
# story.sh LEASEHOLD: the licence of one that was killed is the next one's, and the other's is not.
set -euo pipefail
leasehold=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
holders=()
trap 'kill -KILL "${holders[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
export LEASEHOLD_STORE=sqlite:$folder/locks.db

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
simulate() { exec "$leasehold" run simulator --permits 2 --ttl 1s "$@" -- "$here/simulate.sh" "$folder"; }
hang() {
  FAULT=hang simulate >"$folder/$1.says" &
  holders+=($!)
  until [[ -s $folder/$1.says ]]; do sleep 0.02; done
}

hang ann
hang bob
expect "$(cat "$folder/ann.says" "$folder/bob.says")" $'on licence 0\non licence 1'
status=0
(simulate) 2>"$folder/messages" || status=$?
expect $status 75

# Nobody gives ann's licence back: it is the next one's when her lease is over.
kill -KILL "${holders[0]}"
expect "$(simulate --wait 60s)" "on licence 0"

# Bob's was his all the time.
kill -0 "${holders[1]}"
kill -TERM "${holders[1]}"
status=0
wait "${holders[1]}" || status=$?
expect $status 143
