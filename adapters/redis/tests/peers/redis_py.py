# redis-py's Lock.
import redis


class Lock:
    def __init__(self, address, name, ttl_ms):
        host, port = address.rsplit(":", 1)
        self.lock = redis.Redis(host, int(port)).lock(name, timeout=ttl_ms / 1000, sleep=0.01)

    def take(self, seconds):
        return self.lock.acquire(blocking=seconds > 0, blocking_timeout=seconds)

    def give(self):
        self.lock.release()
