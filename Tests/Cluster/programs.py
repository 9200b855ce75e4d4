"""Processes with a log each, and waiting for them."""

import os
import signal
import socket
import subprocess
import time


class Missing(Exception):
    """A program is not installed, or this user may not do what a test needs. The message says what to do."""


class Failed(Exception):
    """A program did not start. The message has the end of its log."""


def until(condition, seconds, pause=0.02):
    """Polls until the condition is true or the time is over. Returns its last result."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return answer


def last(seconds, start):
    """Waits until `seconds` have passed since `start`: the length of an outage."""
    until(lambda: False, max(0, seconds - (time.monotonic() - start)))


def http_get(address, port, path, seconds=2):
    """Returns the status of a request, or 0 if there was no answer."""
    try:
        with socket.create_connection((address, port), timeout=seconds) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            head = connection.recv(4096)
        return int(head.split(b" ")[1])
    except (OSError, IndexError, ValueError):
        return 0


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

    def text(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def fail(self, sentence):
        raise Failed(f"{sentence}\n" + "\n".join(self.text().splitlines()[-20:]))
