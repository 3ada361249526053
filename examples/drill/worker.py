#!/usr/bin/env python3
"""A worker for `leasehold drill`: adds 10 to the balance of an account in SQLite, behind its fence.

  sqlite3 bank.db 'PRAGMA journal_mode = wal; CREATE TABLE account(balance INTEGER); INSERT INTO account VALUES(0)'
  leasehold fence install sqlite:bank.db
  leasehold drill --store sqlite:locks.db \\
      --watch "sqlite3 -cmd '.timeout 5000' bank.db 'SELECT * FROM account'" \\
      --fence sqlite:bank.db -- examples/drill/worker.py bank.db
"""

import os
import sqlite3
import sys
import time


def take_the_lock():
    """Starts this program again, by `leasehold run`, with the lock."""
    os.execvp("leasehold", [
        "leasehold", "run", os.environ["LEASEHOLD_LOCK"], "--fenced",
        "--ttl", os.environ["LEASEHOLD_TTL"], "--wait", "1m", "--", sys.executable, *sys.argv])


def behind_the_fence(database, work):
    """One transaction; nothing is read or written before the fence was entered."""
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute(
            "INSERT INTO leasehold_enter(resource, token, lineage, request) VALUES(?, ?, ?, ?)",
            ("account", int(os.environ["LEASEHOLD_TOKEN"]), os.environ["LEASEHOLD_LINEAGE"],
             os.environ["LEASEHOLD_REQUEST"]))
        result = work()
        database.execute("COMMIT")
        return result
    except sqlite3.Error as error:
        database.execute("ROLLBACK")
        if "leasehold: fenced_out" in str(error):  # count it: this is the stale-holder alarm
            database.execute("INSERT INTO leasehold_count_refusal(resource) VALUES('account')")
        raise


def main():
    if "LEASEHOLD_TOKEN" not in os.environ:
        take_the_lock()
    database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
    try:
        balance, = behind_the_fence(
            database, lambda: database.execute("SELECT balance FROM account").fetchone())
        time.sleep(0.3)  # the work
        behind_the_fence(
            database, lambda: database.execute("UPDATE account SET balance = ?", (balance + 10,)))
    except sqlite3.Error as error:
        sys.exit(f"nothing was written: {error}")


if __name__ == "__main__":
    main()
