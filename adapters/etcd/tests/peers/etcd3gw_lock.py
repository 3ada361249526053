# The Lock of etcd3gw, by etcd's JSON gateway. NAME is the whole key.
from etcd3gw.client import Etcd3Client


class Lock:
    def __init__(self, address, name, ttl_ms):
        host, port = address.rsplit(":", 1)
        self.lock = Etcd3Client(host=host, port=int(port), api_path="/v3/").lock("", ttl=(ttl_ms + 999) // 1000)
        self.lock.key = name  # else it begins with its own prefix

    def take(self, seconds):
        assert seconds == 0, "it cannot wait"
        return self.lock.acquire()

    def give(self):
        assert self.lock.release()
