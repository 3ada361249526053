# python-etcd3's Lock. NAME is the whole key.
import etcd3


class Lock:
    def __init__(self, address, name, ttl_ms):
        host, port = address.rsplit(":", 1)
        client = etcd3.client(host=host, port=int(port))
        self.lock = client.lock("", ttl=(ttl_ms + 999) // 1000)
        self.lock.key = name  # else it begins with /locks/

    def take(self, seconds):
        return self.lock.acquire(timeout=seconds)

    def give(self):
        self.lock.release()
