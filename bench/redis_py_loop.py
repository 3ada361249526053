# redis_py_loop.py PORT KEY: takes the lock with redis-py's defaults, holds it for 50 ms, does something else for 5 ms,
# and so on.
# redis_py_loop.py PORT KEY measure: does it once for each line that it reads, and tells how many milliseconds it waited.
import sys
import time

import redis

lock = redis.Redis(port=int(sys.argv[1])).lock(sys.argv[2], timeout=30)


def turn():
    began = time.monotonic()
    lock.acquire()
    waited = time.monotonic() - began
    time.sleep(0.05)
    lock.release()
    return waited * 1000


if sys.argv[3:] == ["measure"]:
    for _ in sys.stdin:
        print(turn(), flush=True)
while True:
    turn()
    time.sleep(0.005)
