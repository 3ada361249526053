#!/bin/bash
# story.sh PROGRAM LEASEHOLD: the event arrives, once to an idempotent receiver, whoever is killed.
set -euo pipefail
program=$1
leasehold=$2
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
shop=$folder/shop.db
shipping=$folder/shipping.db

expect() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; exit 1; }; }
killed() { local status=0; "$@" || status=$?; expect $status 137; }
relay() { "$leasehold" outbox relay "sqlite:$shop" --ttl 1s --wait 1m --until-empty --command "$1"; }
asked() { sqlite3 "$1" "$2"; }
sqlite3 "$shipping" 'CREATE TABLE heard(key); CREATE TABLE booked(key PRIMARY KEY, cents)'
receive="'$here/receive.sh' '$shipping'"

# Killed before the commit: no payment, no event.
killed env FAULT=before_commit "$program" "$shop" 1 3000
expect "$(asked "$shop" 'SELECT count(*) FROM payment')" 0
relay "$receive"
expect "$(asked "$shipping" 'SELECT count(*) FROM heard')" 0

# Killed between commit and delivery: the event is in the outbox.
killed env FAULT=after_commit "$program" "$shop" 1 3000
expect "$(asked "$shop" 'SELECT count(*) FROM payment')" 1
expect "$(asked "$shipping" 'SELECT count(*) FROM heard')" 0

# The relay is killed when the receiver has it and the outbox does not know yet.
killed relay "$receive && kill -9 \$PPID"
expect "$(asked "$shipping" 'SELECT count(*) FROM heard')" 1
relay "$receive"
expect "$(asked "$shipping" 'SELECT count(*) FROM heard')" 2
expect "$(asked "$shipping" 'SELECT key, cents FROM booked')" "received/1|3000"

# Nothing is left, and nothing comes again.
relay "$receive"
expect "$(asked "$shipping" 'SELECT count(*) FROM heard')" 2
