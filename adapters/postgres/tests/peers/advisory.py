# pg_advisory_lock, called by a program that has never heard of Leasehold. NAME is what `leasehold show` prints, KIND the
# driver: psycopg2 or psycopg.
import importlib
import re


class Lock:
    def __init__(self, address, name, ttl_ms, kind):
        self.driver = importlib.import_module(kind)
        self.connection = self.driver.connect(address)
        self.connection.autocommit = True
        self.key = re.fullmatch(r"SELECT pg_try_advisory_lock\((-?\d+)\)", name)[1]

    def ask(self, sql):
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor.fetchone()[0]

    def take(self, seconds):
        if seconds == 0:
            return self.ask(f"SELECT pg_try_advisory_lock({self.key})")
        self.ask(f"SELECT set_config('lock_timeout', '{seconds}s', false)")
        try:
            self.ask(f"SELECT pg_advisory_lock({self.key})")
        except self.driver.errors.LockNotAvailable:
            return False
        return True

    def give(self):
        assert self.ask(f"SELECT pg_advisory_unlock({self.key})")
