# kazoo's Lock; with the kind `patterns` it also looks for the names that Curator uses.
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
        patterns = ["-lock-"] if kind == "patterns" else []
        self.lock = client.Lock(name, "peer", extra_lock_patterns=patterns)

    def take(self, seconds):
        try:
            return self.lock.acquire(blocking=seconds > 0, timeout=seconds or None)
        except LockTimeout:
            return False
        except NoNodeError:
            sys.exit(44)  # a test expects it

    def give(self):
        self.lock.release()
