"""peer.py FILE ADDRESS NAME TTL_MS [KIND]: a client that other people wrote, as testing/peer_conformance.h drives it.

FILE has a class Lock(address, name, ttl_ms, kind=...) with take(seconds), which says whether it has the lock, and
give(). take(0) is one attempt.
"""
import os
import runpy
import sys

file, address, name, ttl_ms, *kind = sys.argv[1:]
lock = runpy.run_path(file)["Lock"](address, name, int(ttl_ms), *kind)


def give():
    lock.give()
    return "free"


def race(count, path):
    for _ in range(int(count)):
        if not lock.take(60):
            return "timeout"
        with open(path) as old:
            number = int(old.read())
        with open(path, "w") as new:
            new.write(str(number + 1))
        lock.give()
    return "done"


orders = {
    "try": lambda: "held" if lock.take(0) else "busy",
    "take": lambda: "held" if lock.take(60) else "timeout",
    "give": give,
    "race": race,
}
print("ready", flush=True)
for line in sys.stdin:
    order, *words = line.split()
    print(orders[order](*words), flush=True)
os._exit(0)  # nothing is released
