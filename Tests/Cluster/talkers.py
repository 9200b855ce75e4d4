"""People in one room on several nodes who send signals to each other at a fixed rate, and count what arrives: none may be lost, and none
may arrive twice. A process of its own, so that its clock is not held up by the test.

    python3 -B Tests/Cluster/talkers.py PLAN        PLAN is JSON (`Talkers` in rows_letters.py)

Prints "talking" when all have joined and the first signals are sent, and in the end one line of JSON. Ends when its standard input does.
"""

import heapq
import itertools
import json
import os
import selectors
import sys
import threading
import time
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Attacks"))

from client import Client, Refused  # noqa: E402

ROOM_CAPACITY = 100
# The time after the last signal in which delayed signals may arrive.
LATE_SECONDS = 20


class Talker(Client):
    """A member of the room. `member`: the connection id in its session."""

    def __init__(self, server, source, room):
        super().__init__(server, source, seconds=10)
        joined = self.join(room, options={"capacity": ROOM_CAPACITY})
        self.session = joined["sessionId"]
        self.member = self.request("session.join", sessionId=self.session, token=joined["token"])["connectionId"]

    def signal(self, to, text):
        self.ask("session.signal", sessionId=self.session, to=to.member, signalType="talk", data=text)


class Pair:
    """One who sends and one who receives. `group` names where both are."""

    def __init__(self, group, sender, receiver):
        self.group, self.sender, self.receiver = group, sender, receiver
        self.sent = self.last = 0
        # How often each signal has arrived, by number.
        self.arrived = {}
        self.disordered = 0

    def send(self, index):
        self.sent += 1
        self.sender.signal(self.receiver, f"{index}.{self.sent}.{time.monotonic_ns()}")

    def receive(self, number):
        self.arrived[number] = self.arrived.get(number, 0) + 1
        self.disordered += number < self.last
        self.last = max(self.last, number)


class Talk:
    """All pairs. `times`: the seconds that the signals of each group took."""

    def __init__(self, plan):
        self.servers = [SimpleNamespace(host=host, port=port) for host, port in plan["nodes"]]
        self.sources, self.room = itertools.cycle(plan["sources"]), plan["room"]
        self.times = {group["name"]: [] for group in plan["groups"]}
        self.refusals = {}
        self.selector = selectors.DefaultSelector()
        self.pairs = []
        for group in plan["groups"]:
            for _ in range(group["pairs"]):
                self.pairs.append(Pair(group["name"], self._join(group["from"]), self._join(group["to"])))

    def _join(self, node):
        talker = Talker(self.servers[node], next(self.sources), self.room)
        self.selector.register(talker.socket.connection, selectors.EVENT_READ, talker)
        # The others hear of each newcomer, and the server gives up those who do not read.
        self.read(0)
        return talker

    def read(self, seconds):
        """Handles what arrives within this time, or at once if something has arrived."""
        for key, _ in self.selector.select(max(0, seconds)):
            for message in key.data.arrived():
                self._note(message)

    def _note(self, message):
        if message["type"] == "error":
            self.refusals[message["code"]] = self.refusals.get(message["code"], 0) + 1
        if message["type"] != "session.signal" or message.get("signalType") != "talk":
            return
        index, number, sent = map(int, message["data"].split("."))
        self.pairs[index].receive(number)
        self.times[self.pairs[index].group].append((time.monotonic_ns() - sent) / 1e9)

    def talk(self, rate, seconds):
        """Each sender sends `rate` signals a second, evenly."""
        start = time.monotonic()
        # When each pair is due. They begin at different times, so that signals are spread.
        due = [(start + index / rate / len(self.pairs), index) for index in range(len(self.pairs))]
        heapq.heapify(due)
        while due:
            now = time.monotonic()
            at, index = due[0]
            if at > now:
                self.read(at - now)
                continue
            self.pairs[index].send(index)
            following = (at + 1 / rate, index)
            if following[0] < start + seconds:
                heapq.heapreplace(due, following)
            else:
                heapq.heappop(due)
            self.read(0)

    def finish(self):
        """Waits for what is on its way."""
        end = time.monotonic() + LATE_SECONDS
        while time.monotonic() < end and any(len(pair.arrived) < pair.sent for pair in self.pairs):
            self.read(0.1)
        end = time.monotonic() + 0.5  # For one that arrives a second time.
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def report(self):
        return {
            "sent": sum(pair.sent for pair in self.pairs),
            "lost": sum(pair.sent - len(pair.arrived) for pair in self.pairs),
            "twice": sum(count - 1 for pair in self.pairs for count in pair.arrived.values()),
            "disordered": sum(pair.disordered for pair in self.pairs),
            "refusals": self.refusals, "times": self.times,
        }


def end_with_input():
    sys.stdin.read()
    os._exit(1)


def main(plan):
    threading.Thread(target=end_with_input, daemon=True).start()
    talk = Talk(plan)
    talk.talk(plan["rate"], 1)  # So that nothing happens for the first time when it is measured.
    talk.finish()
    for times in talk.times.values():
        times.clear()
    print("talking", flush=True)
    talk.talk(plan["rate"], plan["seconds"])
    talk.finish()
    print(json.dumps(talk.report()), flush=True)


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except Refused as refusal:
        sys.exit(f"a person in the room was refused or disconnected: {refusal}")
