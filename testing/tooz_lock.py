# The lock of tooz. ADDRESS is a URL of tooz, in which {seconds} stands for the TTL. With its driver for etcd, NAME is the
# whole key.
from tooz import coordination


class Lock:
    def __init__(self, address, name, ttl_ms):
        coordinator = coordination.get_coordinator(address.format(seconds=(ttl_ms + 999) // 1000), b"peer")
        coordinator.start()
        self.lock = coordinator.get_lock(name.encode())
        if address.startswith("etcd3:"):
            self.lock._lock.key = name  # else it begins with /locks/

    def take(self, seconds):
        return self.lock.acquire(blocking=seconds or False)

    def give(self):
        assert self.lock.release()
