# etcd's own lock service, by its JSON gateway. It has no attempt that does not wait: a short wait stands for one.
import base64
import json
import socket
import urllib.request


def text(value):
    return base64.b64encode(value.encode()).decode()


class Lock:
    def __init__(self, address, name, ttl_ms):
        self.address = address
        self.name = name
        self.lease = self.ask("lease/grant", {"TTL": (ttl_ms + 999) // 1000})["ID"]

    def ask(self, path, request, seconds=60):
        url = f"http://{self.address}/v3/{path}"
        with urllib.request.urlopen(url, json.dumps(request).encode(), timeout=seconds) as reply:
            return json.load(reply)

    def take(self, seconds):
        try:
            self.key = self.ask("lock/lock", {"name": text(self.name), "lease": self.lease}, seconds or 0.5)["key"]
            return True
        except (socket.timeout, TimeoutError):
            return False

    def give(self):
        self.ask("lock/unlock", {"key": self.key})
