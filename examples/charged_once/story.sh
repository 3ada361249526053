#!/bin/bash
# story.sh PROGRAM: the invoice is charged once, although two of three calls are killed.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
data=$folder/shop.db

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
killed() { local status=0; FAULT=$1 "$program" "$data" 1234 3000 || status=$?; expect $status 137; }
charges() { sqlite3 "$data" 'SELECT count(*) FROM charge'; }

killed before_commit
expect "$(charges)" 0
killed before_reply
expect "$(charges)" 1
expect "$("$program" "$data" 1234 3000)" "receipt 1, charged before"
expect "$(charges)" 1

# The same key for another amount is a mistake, and told.
said=$("$program" "$data" 1234 9900 2>&1) && { echo "charged another amount"; exit 1; }
[[ $said == *"used before with other parameters"* ]] || { echo "unclear: $said"; exit 1; }
# Another invoice is another key.
expect "$("$program" "$data" 1235 500)" "receipt 2, charged now"
