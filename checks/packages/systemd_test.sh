#!/bin/bash
# systemd accepts the examples for it, and the command in them does what it says: it runs once, and a second one finds
# the lock kept. Nothing is started by systemd.
#   systemd_test.sh EXAMPLES LEASEHOLD
set -euo pipefail
examples=$1 leasehold=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{usr/bin,usr/local/bin,usr/lib/systemd,etc/systemd/system}
cp -r /usr/lib/systemd/system "$root/usr/lib/systemd"
cp "$examples"/* "$root/etc/systemd/system"
cp "$leasehold" "$root/usr/bin/leasehold"
cp /bin/true "$root/usr/local/bin/nightly-export"
# It ends with 0 also after "…, ignoring".
complaints=$(systemd-analyze verify --root="$root" nightly-export.service nightly-export.timer 2>&1) || true
[[ -z $complaints ]] || { echo "$complaints"; exit 1; }

read -ra command < <(sed -n 's|^ExecStart=/usr/bin/leasehold ||p' "$examples/nightly-export.service")
[[ ${command[-1]} == /usr/local/bin/nightly-export ]]
command[-1]='echo'
export LEASEHOLD_STORE=sqlite:$root/locks.db LEASEHOLD_MACHINE_ID=test
for expected in exported ''; do
  said=$("$leasehold" "${command[@]}" exported)
  [[ $said == "$expected" ]]
done
