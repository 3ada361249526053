#!/bin/sh
# receive.sh DATA-FILE: the shipping department. Books a payment once, however often it hears of it.
set -eu
cents=$(cat)
sqlite3 -cmd '.timeout 5000' "$1" "INSERT INTO heard VALUES('$LEASEHOLD_IDEMPOTENCY_KEY');
  INSERT OR IGNORE INTO booked VALUES('$LEASEHOLD_IDEMPOTENCY_KEY', $cents);"
