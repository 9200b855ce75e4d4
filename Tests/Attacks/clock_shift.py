"""Builds the library that moves a server's clocks, and moves them."""

import atexit
import mmap
import os
import shutil
import struct
import subprocess
import tempfile

from report import Skipped

LAYOUT = struct.Struct("=qqq")
NANOSECONDS = 1_000_000_000


class ShiftLibrary:
    """The compiled library. Use it in a `with` statement, which deletes it."""

    def __enter__(self):
        compiler = shutil.which("cc") or shutil.which("clang")
        if not compiler:
            raise Skipped("there is no C compiler for the library that moves the clock")
        self.folder = tempfile.mkdtemp(prefix="confab-attack-clock-")
        atexit.register(self.__exit__)
        self.path = os.path.join(self.folder, "clock_shift.so")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clock_shift.c")
        answer = subprocess.run(
            [compiler, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", self.path, source, "-pthread",
             "-ldl"], capture_output=True, text=True, timeout=60)
        if answer.returncode != 0:
            self.__exit__()
            raise Skipped(f"the library that moves the clock cannot be built: {answer.stderr[-500:]}")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


class Clock:
    """The clocks of one server: its offsets from the machine's."""

    def __init__(self, library):
        handle, self.path = tempfile.mkstemp(prefix="offsets-", dir=library.folder)
        os.write(handle, LAYOUT.pack(0, 0, 0))
        self.memory = mmap.mmap(handle, LAYOUT.size)
        os.close(handle)
        self.environment = {"LD_PRELOAD": library.path, "CLOCK_SHIFT_FILE": self.path}

    def _write(self, offset, seconds):
        struct.pack_into("=q", self.memory, offset, int(seconds * NANOSECONDS))

    def set(self, seconds):
        """Sets the time of day, as an operator or NTP may do: so many seconds ahead of the machine's."""
        self._write(0, seconds)

    def sleep(self, seconds):
        """Lets the machine sleep: the time of day and CLOCK_BOOTTIME include that time, CLOCK_MONOTONIC does not."""
        realtime, boottime, _ = LAYOUT.unpack(self.memory[:])
        self._write(0, realtime / NANOSECONDS + seconds)
        self._write(8, boottime / NANOSECONDS + seconds)

    @property
    def readings(self):
        return LAYOUT.unpack(self.memory[:])[2]
