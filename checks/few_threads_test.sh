#!/bin/bash
# few_threads_test.sh PROGRAM SHIM: where no more threads can be started, the program says so in one sentence and ends
# with a status, as for any other failure. Of the program as it is shipped: how it is linked decides which exceptions
# can be caught.
set -uo pipefail
program=$1 shim=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

failed=0
try() {  # try THREADS URL
  local status lines
  LD_PRELOAD=$shim LEASEHOLD_THREADS=$1 timeout 60 "$program" run x --store "$2" -- true </dev/null 2>"$folder/errors"
  status=$?
  lines=$(wc -l <"$folder/errors")
  case $status in
    0) ((lines == 0)) && return ;;
    69 | 70) ((lines == 1)) && grep -q '^leasehold: ' "$folder/errors" && return ;;
  esac
  echo "with $1 threads, ${2%%:*}: status $status, $lines lines:"
  cat "$folder/errors"
  failed=1
}

for threads in {0..8}; do
  try "$threads" "sqlite:$folder/locks.db"
  try "$threads" redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3  # nobody is there
done
exit $failed
