#!/usr/bin/env python3
"""Order totals: orders come in for many customers, and each customer has one who adds them up.

The customers are split into partitions; every machine runs
    leasehold partitions totals --count 4 --member "$(hostname)" -- worker.py DATABASE
and gets its share. Between two orders a worker hears what it gained and what it must give up, so it
never gives up a partition in the middle of an order. It reads and writes behind the fence of the
partition, which refuses it once another one has begun there. Failure injected (story.sh): a whole
machine stands still between a worker's read and its write, for longer than its leases last.
"""
import json, os, select, signal, sqlite3, sys

database = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
owned = {}
unread = b""


def hear(seconds):
    """Takes what is told, and answers."""
    global unread
    if not select.select([0], [], [], seconds)[0]:
        return
    more = os.read(0, 65536)
    if not more:
        sys.exit(0)
    *lines, unread = (unread + more).split(b"\n")
    for event in map(json.loads, lines):
        number = event["partition"]
        if event["event"] == "gained":
            owned[number] = event
        else:
            del owned[number]
            print("done", number, flush=True)


def behind_the_fence(lease, *steps):
    """One transaction, which enters before it reads. Gives the first row of the last step."""
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute("INSERT INTO leasehold_enter(resource, token, lineage, request)"
                         " VALUES(:lock, CAST(:token AS INTEGER), :lineage, :request)", lease)
        for sql, *values in steps:
            row = database.execute(sql, values).fetchone()
        database.execute("COMMIT")
        return row
    except sqlite3.Error as error:
        database.execute("ROLLBACK")
        if "fenced_out" in str(error):  # the alarm: a holder was late
            database.execute("INSERT INTO leasehold_count_refusal(resource) VALUES(?)", [lease["lock"]])
        raise


def add_up_one(number, lease):
    order = behind_the_fence(lease, ("SELECT orders.id, customer, orders.amount, total.amount FROM orders"
                                     " JOIN total USING (customer) WHERE partition = ? ORDER BY id", number))
    if order is None:
        return False
    identity, customer, amount, total = order
    if os.environ.get("FAULT") == "freeze" and total > 0:
        os.kill(os.getppid(), signal.SIGSTOP)  # the whole machine: its member too
        os.kill(os.getpid(), signal.SIGSTOP)
    behind_the_fence(lease, ("DELETE FROM orders WHERE id = ?", identity),
                     ("UPDATE total SET amount = ? WHERE customer = ?", total + amount, customer))
    return True


while True:
    hear(0 if any([add_up_one(*one) for one in list(owned.items())]) else 0.2)
