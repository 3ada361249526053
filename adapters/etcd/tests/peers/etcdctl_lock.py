# `etcdctl lock`, a process for each time that it has the lock.
import ctypes
import select
import signal
import subprocess


class Lock:
    def __init__(self, address, name, ttl_ms):
        ttl = str((ttl_ms + 999) // 1000)
        self.command = ["etcdctl", "--endpoints", address, "lock", name, "--ttl", ttl]

    def take(self, seconds):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={"ETCDCTL_API": "3", "PATH": "/usr/bin"},
                                        preexec_fn=dies_with_this_process)
        # It tells its key when it has the lock. It cannot only try.
        if select.select([self.process.stdout], [], [], seconds or 2)[0]:
            return self.process.stdout.readline() != b""
        self.give()
        return False

    def give(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def dies_with_this_process():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
