#!/bin/bash
# story.sh PROGRAM: transfers in opposite directions all end; one that is killed half way moves nothing.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
move() { "$program" "$folder/locks.db" "$folder/bank.db" "$@"; }
moves() { for _ in 1 2 3 4 5; do move "$@"; done; }
accounts() { sqlite3 "$folder/bank.db" 'SELECT group_concat(cents) FROM account'; }

moves a b 10 & there=$!
moves b a 4 & back=$!
wait $there
wait $back
expect "$(accounts)" 970,1030

# Killed with both locks: the next one has them when the leases are over.
status=0
FAULT=kill move a b 500 || status=$?
expect $status 137
expect "$(accounts)" 970,1030
move b a 30
expect "$(accounts)" 1000,1000
