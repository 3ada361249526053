#!/bin/bash
# story.sh LEASEHOLD: three at once, one export; a killed one is done by the next. All are on this machine, so that
# SQLite does for a store of several.
set -euo pipefail
leasehold=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LEASEHOLD_STORE=sqlite:$folder/locks.db
cd "$folder"
printf 'id,amount\n1,30\n2,45\n' >orders.csv

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
night() { "$leasehold" run nightly-export --once "$1" --wait 60s -- "$here/export.sh" orders.csv export.csv; }

# Killed half way: nothing is stored under the key, and no half file is to be seen.
status=0
FAULT=half_way night 2026-11-15 || status=$?
expect $status 137
[[ ! -e export.csv ]] || { echo "a half file"; exit 1; }

# Three at once: the first exports, and the others end with its status and do nothing.
for one in a b c; do night 2026-11-15 >"$one" 2>"$one.messages" & done
wait
expect "$(cat a b c)" "exported"
expect "$(cat export.csv)" "$(cat orders.csv)"
expect "$(night 2026-11-15 2>/dev/null)" ""
expect "$(night 2026-11-16 2>/dev/null)" "exported"
