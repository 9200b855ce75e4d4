"""Servers that pair.py and recording.py measure, each with its own data and ports, and the CPU time of their threads."""

import os
import re
import signal
import subprocess
import sys
import time

# The clients of a load are more, and faster, than the default limits allow one address.
MANY = {
    "CONFAB_METRICS_ENABLED": "false", "CONFAB_LIMITS_STORED_PER_ADDRESS_AND_DAY": "100GiB",
    "CONFAB_CALL_PLACED_PER_MINUTE": "1000000", "CONFAB_CALL_RINGS_PER_MINUTE": "1000000",
    "CONFAB_CALL_UNSUCCESSFUL_LIMIT": "1000000",
} | {f"CONFAB_LIMITS_{name}": "1000000" for name in (
    "REQUESTS_PER_SECOND", "REQUEST_BURST", "HANDSHAKES_PER_SECOND", "HANDSHAKE_BURST", "SOCKETS_PER_ADDRESS",
    "ADDRESS_MESSAGES_PER_SECOND", "ADDRESS_MESSAGE_BURST", "PERSON_REQUESTS_PER_SECOND", "PERSON_REQUEST_BURST")}
# How the names of the threads of media loops begin.
MEDIA = "confab-media"
# How long a server and a load may take to start, in seconds.
START = 120


class Failure(Exception):
    """What could not be measured, as a sentence."""


def contents(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def end(process):
    """Ends a process, and waits for it."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Server:
    """A server, and the load that runs against it. End it with stop()."""

    def __init__(self, executable, folder):
        os.mkdir(folder)
        self.folder, self.data, self.load = folder, f"{folder}/data", None
        arguments = ["serve", "--host", "127.0.0.1", "--port", "0", "--media-port", "0", "--media-address", "127.0.0.1"]
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [executable, *arguments, "--data-dir", self.data], env=os.environ | MANY, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)
        try:
            found = self.wait(self.process, f"{folder}/log", r"Confab is ready: (https?://[^/\s]+)")
        except BaseException:
            end(self.process)
            raise
        self.url, self.port = found, found.rsplit(":", 1)[1]

    def wait(self, process, path, pattern):
        """Waits until a process has written what the pattern matches, and returns its group."""
        limit = time.monotonic() + START
        while time.monotonic() < limit:
            is_over = process.poll() is not None
            found = re.search(pattern, contents(path))
            if found:
                return found.group(1)
            if is_over:
                break
            time.sleep(0.1)
        raise Failure(f"{' '.join(process.args[:3])} did not start:\n{contents(path)[-2000:]}")

    def send_media(self, executable, subscribers, seconds, *options):
        """Starts a publisher and its subscribers, for this many seconds at most. Returns when packets flow."""
        with open(f"{self.folder}/load", "w", encoding="utf-8") as log:
            self.load = subprocess.Popen(
                [executable, "bench", "sfu", "--subscribers", str(subscribers), "--server", self.url, "--data-dir", self.data,
                 "--pid", str(self.process.pid), "--seconds", str(seconds), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait(self.load, f"{self.folder}/load", "(Measuring)")

    def require_load(self):
        if self.load.poll() is not None or self.process.poll() is not None:
            raise Failure(f"The server or its load has ended:\n{contents(f'{self.folder}/load')[-2000:]}")

    def stop(self):
        for process in (self.load, self.process):
            if process:
                end(process)

    def threads(self):
        """Returns the CPU time of each thread in nanoseconds, by its number and name."""
        times, tasks = {}, f"/proc/{self.process.pid}/task"
        for number in os.listdir(tasks):
            try:
                name = contents(f"{tasks}/{number}/comm").strip()
                times[number, name] = int(contents(f"{tasks}/{number}/schedstat").split()[0])
            except FileNotFoundError:
                pass  # The thread has ended.
        return times


def used(before, after, name=""):
    """Returns the CPU time between two snapshots in ms, of the threads whose names begin like this."""
    return sum(time - before.get(thread, 0) for thread, time in after.items() if thread[1].startswith(name)) / 1e6


def used_by_media(before, after):
    """Returns the CPU time between two snapshots in ms, of the media loops. Older builds do not name them, and have one."""
    if any(name.startswith(MEDIA) for _, name in after):
        return used(before, after, MEDIA)
    return max(time - before.get(thread, 0) for thread, time in after.items()) / 1e6


def run(measure):
    """Runs a measurement that can be ended with SIGTERM, and prints a failure as a sentence."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        measure()
    except Failure as failure:
        sys.exit(str(failure))
