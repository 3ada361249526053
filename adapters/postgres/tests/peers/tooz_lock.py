# The lock of tooz with its driver for PostgreSQL.
from tooz import coordination


class Lock:
    def __init__(self, address, name, ttl_ms):
        coordinator = coordination.get_coordinator(address.replace("postgres:", "postgresql:", 1), b"peer")
        coordinator.start()
        self.lock = coordinator.get_lock(name.encode())

    def take(self, seconds):
        return self.lock.acquire(blocking=seconds or False)

    def give(self):
        assert self.lock.release()
