# redis-py's Lock; with the kind `asyncio`, the one of redis.asyncio.
import asyncio

import redis
import redis.asyncio


class Lock:
    def __init__(self, address, name, ttl_ms, kind="blocking"):
        host, port = address.rsplit(":", 1)
        client = redis.Redis if kind == "blocking" else redis.asyncio.Redis
        self.lock = client(host=host, port=int(port)).lock(name, timeout=ttl_ms / 1000, sleep=0.01)
        self.finish = (lambda answer: answer) if kind == "blocking" else asyncio.new_event_loop().run_until_complete

    def take(self, seconds):
        return self.finish(self.lock.acquire(blocking=seconds > 0, blocking_timeout=seconds))

    def give(self):
        self.finish(self.lock.release())
