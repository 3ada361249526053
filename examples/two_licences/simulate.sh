#!/bin/bash
# Two licences: a simulator may run twice at a time, on whatever machine. A permit is one of the two, and its slot says
# which. In the place of each `simulate.sh` that ends, the next one runs:
#   LEASEHOLD_STORE=postgres://app@db.internal/locks
#   leasehold run simulator --permits 2 --wait 1h -- simulate.sh /srv/licences
# A third would be told by the licence's vendor, so that no fence is needed.
# Failure injected (story.sh): one that has a permit is killed, with the wrapper that would have given it back.
set -euo pipefail

# As the vendor would: a licence is one process's.
exec 9>"$1/$LEASEHOLD_SLOT"
flock --nonblock 9 || { echo "licence $LEASEHOLD_SLOT is in use"; exit 1; }
echo "on licence $LEASEHOLD_SLOT"
[[ ${FAULT-} != hang ]] || exec sleep 60
