#!/bin/bash
# What is done in the fresh root with the packages in /mnt: in_root.sh demo|modules|lock URL...|remove|consumers
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
unset TMPDIR  # that of the host is not there

fail() { echo "in_root.sh: $*"; exit 1; }
apt() { apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt-get $*"; }; }
files() {
  find / -xdev \( -path /tmp -o -path /mnt -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \) -prune \
    -o ! -name '*-old' -print | sort
}
unchanged() { files | diff "$1" - || fail "these files are there now, and were not before (>), or are gone (<)"; }

says() {  # says STATUS WORDS COMMAND...
  local status=$1 words=$2 said got=0
  shift 2
  said=$("$@" 2>&1) || got=$?
  [[ $got == "$status" && $said == *"$words"* ]] || fail "$* should end with $status and say '$words', and: $got, $said"
}

demo() {
  files >/tmp/before
  apt install --no-install-recommends --download-only /mnt/leasehold_*.deb
  SECONDS=0
  apt install --no-install-recommends /mnt/leasehold_*.deb
  leasehold demo </dev/null >/tmp/demo.txt
  local took=$SECONDS
  echo "from 'apt install ./leasehold_*.deb' to the end of 'leasehold demo': $took s and the download (target: 30 s)"
  ((took < 60)) || fail "that is too long"
  grep -q 'refused' /tmp/demo.txt || { cat /tmp/demo.txt; fail "no late write was refused"; }
  local page=/usr/share/doc/leasehold/docs/guarantees.md
  [[ -f $page ]] && grep -q "less $page" /tmp/demo.txt || fail "the demo names no page that is there"
  says 0 'leasehold run' zcat /usr/share/man/man1/leasehold.1.gz
}

# One after the other: each must bring what it needs.
modules() {
  local package technology url
  for package in /mnt/leasehold-*.deb; do
    technology=${package#*leasehold-}
    technology=${technology%%_*}
    url=$technology://127.0.0.1:1/0
    says 77 "the package leasehold-$technology brings it" leasehold ls --store "$url"
    apt install --no-install-recommends "$package"
    says 69 "127.0.0.1:1" leasehold ls --store "$url"
    says 0 "leasehold (= " dpkg-query -W -f "\${Depends}" "leasehold-$technology"
  done
}

lock() {
  local url
  rm -f /etc/machine-id
  says 77 'set LEASEHOLD_MACHINE_ID' leasehold run job --store sqlite:/tmp/locks.db -- true
  echo uninitialized >/etc/machine-id
  says 77 'set LEASEHOLD_MACHINE_ID' leasehold run job --store sqlite:/tmp/locks.db -- true
  export LEASEHOLD_MACHINE_ID=some-container
  for url in "$@"; do
    [[ $url == sqlite:* ]] && url=sqlite:/tmp/locks.db
    says 75 'job' leasehold run job --store "$url" -- leasehold run job --store "$url" -- true
    says 0 'worked' leasehold run job --store "$url" -- echo worked
    echo "locked and released: ${url%%:*}"
  done
  rm -f /etc/machine-id
  # As the first process of a container.
  says 7 worked unshare --propagation=unchanged --pid --fork --mount-proc \
    leasehold run job --store sqlite:/tmp/locks.db -- sh -c 'echo worked; exit 7'
}

remove() {
  apt purge 'leasehold*'
  apt autoremove --purge
  unchanged /tmp/before
  [[ -z $(dpkg-query -W '*leasehold*' 2>/dev/null) ]] || fail "dpkg still knows a package"
}

count_runs() {  # count_runs PROGRAM: of examples/consumer
  rm -rf /tmp/{locks,data}.db*
  says 0 ', run 1' "$1" /tmp/locks.db /tmp/data.db
  says 0 ', run 2' "$1" /tmp/locks.db /tmp/data.db
}

consumers() {
  local example=/usr/share/doc/leasehold/examples/consumer
  export LEASEHOLD_MACHINE_ID=some-container
  apt install --no-install-recommends g++ cmake make pkg-config
  files >/tmp/before
  apt install --no-install-recommends /mnt/leasehold_*.deb /mnt/libleasehold-dev_*.deb
  cmake -S $example -B /tmp/by_cmake
  cmake --build /tmp/by_cmake
  count_runs /tmp/by_cmake/consumer
  # shellcheck disable=SC2046  # flags are meant to be split
  g++ -std=c++20 $example/main.cc -o /tmp/by_pkg_config $(pkg-config --cflags --libs leasehold-sqlite sqlite3)
  count_runs /tmp/by_pkg_config
  apt purge leasehold libleasehold-dev
  apt autoremove --purge
  unchanged /tmp/before
}

"$@"
