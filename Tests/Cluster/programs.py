"""Processes with a log each, and waiting for them."""

import os
import signal
import socket
import subprocess
import threading
import time


class Missing(Exception):
    """A program is not installed, or this user may not do what a test needs. The message says what to do."""


class Failed(Exception):
    """A program did not start or has ended, or a wait was too long. The message says why, and may have the end of a log."""


class Late(Failed):
    """A wait was too long. The message has the last reason and the time."""


class NotYet(Exception):
    """A condition does not hold yet, so `until` tries again. The message says why, for the reader of a failed run."""


def require(holds, otherwise):
    """Returns what holds, or raises `NotYet` with the reason."""
    if not holds:
        raise NotYet(otherwise)
    return holds


def until(probe, seconds, pause=0.1):
    """Calls `probe` until it does not raise `NotYet`, and returns its result. Raises `Late` when the time is over."""
    start, tick = time.monotonic(), threading.Event()
    while True:
        try:
            return probe()
        except NotYet as reason:
            waited = time.monotonic() - start
            if waited >= seconds:
                raise Late(f"waited {waited:.1f} s: {reason}") from None
        tick.wait(pause)


def last(seconds, start):
    """Lets the time pass until `seconds` after `start`: the length of an outage."""
    threading.Event().wait(max(0, seconds - (time.monotonic() - start)))


def http_get(address, port, path, seconds=2):
    """Returns the status and the body of a response, or 0 and the reason if there was none."""
    try:
        with socket.create_connection((address, port), timeout=seconds) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            head, _, body = b"".join(iter(lambda: connection.recv(4096), b"")).partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), body.decode(errors="replace").strip()
    except (OSError, IndexError, ValueError) as error:
        return 0, f"nothing ({error})"


class Program:
    """A process in a group of its own, with a log. It ends with this process. `machine` is where it runs."""

    def __init__(self, folder, name, command, machine, environment=None, is_postgres=False):
        self.name, self.command, self.machine, self.environment = name, command, machine, environment
        self.log = os.path.join(folder, f"{name}.log")
        self.is_postgres = is_postgres
        self.process = None
        self.start()

    def start(self):
        prefix = [*self.machine.prefix, "setpriv", "--pdeathsig", "KILL"]
        if self.is_postgres and os.getuid() == 0:  # PostgreSQL refuses to run as root.
            prefix += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*prefix, *self.command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment,
                start_new_session=True)

    @property
    def runs(self):
        return self.process.poll() is None

    def signal(self, number):
        """Signals all processes of the program. Those of PostgreSQL have groups of their own."""
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
                processes = [self.process.pid, *map(int, children.read().split())]
        except OSError:
            processes = [self.process.pid]
        for process in processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=15):
        """Asks the program to stop, and kills it after `seconds`. Returns whether it stopped by itself."""
        try:
            self.process.send_signal(signal.SIGINT if self.is_postgres else signal.SIGTERM)
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def until(self, goal, probe, seconds):
        """Waits until the probe holds. Raises `Failed` with the end of the log if that takes too long or the program ends before.
        `goal` is a sentence without its period."""
        def probe_while_it_runs():
            if not self.runs:
                self.fail(f"{goal}: the program ended with status {self.process.returncode}.")
            return probe()
        try:
            return until(probe_while_it_runs, seconds, 0.05)
        except Late as late:
            self.fail(f"{goal}: {late}")

    def text(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def fail(self, sentence):
        raise Failed(f"{sentence}\n" + "\n".join(self.text().splitlines()[-20:]))
