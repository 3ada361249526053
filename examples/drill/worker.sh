#!/bin/sh
# A worker for `leasehold drill`: adds 10 to the number in a fenced file.
#
#   echo 0 > total && leasehold fence install file:total
#   leasehold drill --store sqlite:locks.db --watch 'cat total' --fence file:total -- examples/drill/worker.sh
set -eu

# First without the lock, then, by `leasehold run`, with it.
if [ -z "${LEASEHOLD_TOKEN-}" ]; then
  exec leasehold run "$LEASEHOLD_LOCK" --fenced --ttl "$LEASEHOLD_TTL" --wait 1m -- "$0"
fi

total=$(leasehold fence read "$LEASEHOLD_FENCE")  # enter the fence, then read
sleep 0.3                                         # the work
echo $((total + 10)) | leasehold fence write "$LEASEHOLD_FENCE"
