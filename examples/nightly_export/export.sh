#!/bin/bash
# The nightly export: cron starts it on several machines at the same minute, and one run is wanted.
# So the lock is in a store that all of them reach, not in the default one, which is of one machine:
#   LEASEHOLD_STORE=postgres://app@db.internal/locks
#   0 2 * * *  leasehold run nightly-export --once "$(date +\%F)" -- export.sh orders.csv export.csv
# `run` lets one in at a time; --once remembers that the day was done, so that the next ones do
# nothing. A second run would waste work but do no harm, so that no fence is needed: the new file
# takes the place of the old one as a whole. Failure injected (story.sh): the export is killed half way.
set -euo pipefail
from=$1 to=$2

new=$(mktemp "$to.XXXXXX")
trap 'rm -f "$new"' EXIT
head -n 1 "$from" >"$new"
[[ ${FAULT-} != half_way ]] || kill -KILL $$
tail -n +2 "$from" >>"$new"
mv "$new" "$to"
echo "exported"
