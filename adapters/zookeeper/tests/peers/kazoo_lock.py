# kazoo's Lock; with the kind `patterns` it also looks for the names that Curator uses. Its other locks by the kinds
# `read`, `write` and `semaphore` (of one lease).
import logging
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout, NoNodeError

logging.basicConfig(level=logging.CRITICAL)


class Lock:
    def __init__(self, address, name, ttl_ms, kind="default"):
        client = KazooClient(hosts=address, timeout=ttl_ms / 1000)
        client.start(timeout=60)
        if kind == "patterns":
            client.ensure_path(name)  # before others make a folder that does not stay
        make = {
            "patterns": lambda: client.Lock(name, "peer", extra_lock_patterns=["-lock-"]),
            "read": lambda: client.ReadLock(name, "peer"),
            "write": lambda: client.WriteLock(name, "peer"),
            "semaphore": lambda: client.Semaphore(name, "peer"),
        }
        self.lock = make.get(kind, lambda: client.Lock(name, "peer"))()

    def take(self, seconds):
        try:
            return self.lock.acquire(blocking=seconds > 0, timeout=seconds or None)
        except LockTimeout:
            return False
        except NoNodeError:
            sys.exit(44)  # a test expects it

    def give(self):
        self.lock.release()
