#!/usr/bin/env python3
"""Adds 10 to a balance in PostgreSQL, under a lock and behind a fence."""
import json, subprocess, sys, time
import psycopg2

hold = subprocess.Popen(["leasehold", "hold", "account", "--fenced", "--ttl", "3s", "--wait", "1m"],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
line = hold.stdout.readline()
if not line:
    sys.exit(hold.wait())                      # busy, or no store: it has said why
held = json.loads(line)
database = psycopg2.connect("")                # by PGHOST, PGDATABASE and so on

def behind_the_fence(sql, *values):            # one transaction; it enters before it reads
    with database, database.cursor() as cursor:
        cursor.execute("SELECT leasehold_fence.enter('account', %(token)s, %(lineage)s, %(request)s)", held)
        cursor.execute(sql, values)
        return cursor.fetchone()[0]

balance = behind_the_fence("SELECT balance FROM account")
hold.stdin.write("beat\n")                     # at least every held["heartbeat_ms"]
time.sleep(0.7)                                # the work
behind_the_fence("UPDATE account SET balance = %s RETURNING balance", balance + 10)
hold.communicate()                             # closes its input, which releases the lock
