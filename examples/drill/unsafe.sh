#!/bin/sh
# As worker.sh, but it trusts the lock and ignores its token. `leasehold drill` shows the damage.
#
#   echo 0 > total
#   leasehold drill --store sqlite:locks.db --watch 'cat total' -- examples/drill/unsafe.sh total
set -eu

if [ -z "${LEASEHOLD_TOKEN-}" ]; then
  exec leasehold run "$LEASEHOLD_LOCK" --fenced --ttl "$LEASEHOLD_TTL" --wait 1m -- "$0" "$1"
fi

total=$(cat "$1")
sleep 0.3
echo $((total + 10)) > "$1"
