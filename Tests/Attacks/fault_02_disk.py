"""Files that are promised together fill the disk, although each of them had space when it was promised."""

import os
import subprocess
import threading

from client import Client, Refused
from report import Skipped, until
from server import Server

TITLE = "uploads do not fill a small disk"

MIB = 1024 * 1024
DISK = 64 * MIB
# The marks of a server with a large disk, scaled to this one.
LOW_SPACE = 16 * MIB
MIN_FREE_SPACE = 4 * MIB
# Together they fit onto the disk, and leave less than either mark.
FILE = 4 * MIB + 200 * 1024
PEOPLE = 15
# What the database may write meanwhile.
TOLERANCE = MIB // 2
# The server may use an older measurement of the disk for less than this.
MEASURED_WITHIN = 4.5


def run(report):
    require_mounts()
    settings = {"storage.lowSpace": f"{LOW_SPACE >> 20}MiB", "storage.minFreeSpace": f"{MIN_FREE_SPACE >> 20}MiB"}
    with Server(settings, disk=DISK) as server:
        disk = Disk(server)
        watch = ReadyWatch(server, disk)
        people = [Client(server, f"127.0.0.{number + 2}") for number in range(PEOPLE)]
        for person in people:
            # A room each, so that only the disk is shared.
            person.join(None, "Ada")
        try:
            refusals = []
            for wave in ("first", "second"):
                promises = promise_all(people, refusals)
                report.sent(f"the {wave} promises, {FILE / MIB:.1f} MiB from each of {PEOPLE} addresses, with "
                            f"{disk.free() / MIB:.1f} of {DISK >> 20} MiB free")
                report.seen(f"{len(promises)} are accepted, the others get {', '.join(sorted(set(refusals))) or 'nothing'}")
                statuses = upload_all(server, promises)
                report.seen(f"uploaded with {statuses}; {disk.free() / MIB:.2f} MiB are free, at least "
                            f"{disk.least / MIB:.2f} MiB were")
            until(lambda: watch.failed, MEASURED_WITHIN, pause=0.1)
        finally:
            watch.stop()
        report.seen(f"/ready was asked {watch.count} times, and was not 200 {watch.failed} times")
        report.check("storage_full" in refusals, "a promise is refused with storage_full")
        report.check(disk.least >= LOW_SPACE - TOLERANCE, f"{LOW_SPACE >> 20} MiB stay free (storage.lowSpace)")
        report.check(not watch.failed and watch.count, "the server stays ready")


def require_mounts():
    if os.geteuid() != 0:
        raise Skipped("only root can mount a small disk")
    probe = ["unshare", "--mount", "--propagation", "private", "bash", "-c", 'mount -t tmpfs -o size=1m confab-attack /mnt']
    try:
        answer = subprocess.run(probe, capture_output=True, text=True, timeout=10)
    except OSError as problem:
        raise Skipped(f"there is no unshare: {problem}") from None
    if answer.returncode != 0:
        raise Skipped(f"a small disk cannot be mounted: {answer.stderr.strip()}")


class Disk:
    """The server's disk, which only its process and its children see."""

    def __init__(self, server):
        self.path = f"/proc/{server.process.pid}/root{server.data}"
        self.least = DISK

    def free(self):
        answer = os.statvfs(self.path)
        free = answer.f_bavail * answer.f_frsize
        self.least = min(self.least, free)
        return free


class ReadyWatch:
    """Asks for /ready, and measures the disk, all the time."""

    def __init__(self, server, disk):
        self.server, self.disk, self.count, self.failed = server, disk, 0, 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.is_over.wait(0.05):
            self.disk.free()
            status, _ = self.server.ready_status("127.0.0.99", seconds=5)
            self.count += 1
            self.failed += status != 200

    def stop(self):
        self.is_over.set()
        self.thread.join(timeout=10)


def promise_all(people, refusals):
    """Returns the accepted promises, each with its sender."""
    promises = []
    for person in people:
        try:
            promises.append((person, person.request("room.file", name="film.bin", size=FILE)))
        except Refused as refusal:
            refusals.append(refusal.code)
    return promises


def upload_all(server, promises):
    """Uploads all files at once. Returns how often each status came."""
    content, statuses = bytes(FILE), []
    threads = [
        threading.Thread(target=lambda p=person, r=promise: statuses.append(server.put(r, content, p.source)), daemon=True)
        for person, promise in promises]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=15)
    return ", ".join(f"{statuses.count(status)} × {status}" for status in sorted(set(statuses), key=str)) or "no file"
