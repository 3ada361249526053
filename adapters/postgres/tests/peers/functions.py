# The functions that docs/postgres.md offers to other programs. KIND is the driver: psycopg2 or psycopg.
import importlib
import time
import uuid


class Lock:
    def __init__(self, address, name, ttl_ms, kind):
        self.connection = importlib.import_module(kind).connect(address)
        self.connection.autocommit = True
        self.name = name
        self.ttl_ms = ttl_ms

    def ask(self, sql, *parameters):
        cursor = self.connection.cursor()
        cursor.execute(sql, parameters)
        return cursor.fetchone()

    def take(self, seconds):
        self.request = str(uuid.uuid4())
        until = time.monotonic() + seconds
        while True:
            outcome, recheck_ms = self.ask(
                "SELECT o_outcome, o_recheck_ms FROM leasehold.acquire(%s, %s, 'functions.py', %s, %s, NULL)",
                self.name, self.request, self.ttl_ms, seconds > 0)
            if outcome != "queued":
                return outcome == "granted"
            if time.monotonic() > until:
                self.give()
                return False
            time.sleep(min(recheck_ms, 10) / 1000)  # nobody notifies it

    def give(self):
        assert self.ask("SELECT leasehold.release(%s, %s, 0, false)", self.name, self.request)[0]
