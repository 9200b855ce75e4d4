"""What an attack did, what came back, and whether the server held."""

import threading
import time


class Skipped(Exception):
    """The attack cannot run on this machine. The message says why."""


class Impossible(Exception):
    """A step that has nothing to do with the fault failed, so that the attack proves nothing."""


class Report:
    """Prints the lines of one attack as they happen, and counts what did not hold."""

    def __init__(self, number, title):
        self.broken = 0
        print(f"\n{number}. {title}", flush=True)

    def sent(self, text):
        print(f"   sent    {text}", flush=True)

    def seen(self, text):
        print(f"   seen    {text}", flush=True)

    def check(self, holds, expectation):
        """Judges one expectation, worded as what is right."""
        print(f"   {'held  ' if holds else 'BROKEN'}  {expectation}", flush=True)
        if not holds:
            self.broken += 1
        return holds


def until(condition, seconds, pause=0.02):
    """Asks until the condition returns something true. If the time is over first, prints and returns its last answer."""
    end, tick = time.monotonic() + seconds, threading.Event()
    while not (answer := condition()):
        if time.monotonic() >= end:
            print(f"   waited  {seconds} s for {condition.__qualname__}; its last answer is {answer!r}", flush=True)
            break
        tick.wait(pause)
    return answer
