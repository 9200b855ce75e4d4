"""A person with a browser in front of a cluster: follows redirects, and reconnects after a lost connection. It never
resumes, unlike the SDKs."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Attacks"))

from client import Client, Refused  # noqa: E402

from programs import NotYet, require  # noqa: E402

MAX_REDIRECTS = 3
NAMED_NODE_SECONDS = 2.0


class Visitor:
    """One person. All methods have a time limit. `redirects` counts how often a node has sent this person to another one."""

    def __init__(self, cluster, at=None, seconds=15.0):
        self.cluster, self.identity, self.client = cluster, None, None
        self.source = cluster.source()
        self.redirects = 0
        self.connect(at, seconds)

    def connect(self, at=None, seconds=15.0):
        """Comes in, at a node or wherever HAProxy says, and tries again until that works."""
        end = time.monotonic() + seconds
        pause = threading.Event()
        while True:
            path = "/v1/socket" + (f"?at={at}" if at else "")
            try:
                # The SDKs wait this long for a certain node, too (protocol/README.md §3.1).
                wait = NAMED_NODE_SECONDS if at else 5.0
                self.client = Client(self.cluster, self.source, identity=self.identity, seconds=wait, path=path)
                break
            except Refused as refusal:
                if time.monotonic() > end:
                    raise
                if refusal.code == "elsewhere" and refusal.at:
                    self.redirects += 1
                at = refusal.at
                pause.wait(0.1)
        self.identity = self.client.identity
        self.node = self.client.welcome.get("at")

    def request(self, verb, seconds=15.0, **members):
        """Sends a request, follows redirects, and returns the answer."""
        redirects = 0
        end = time.monotonic() + seconds
        while True:
            try:
                return self.client.request(verb, seconds=5.0, **members)
            except Refused as refusal:
                if refusal.code != "elsewhere" or not refusal.at or redirects == MAX_REDIRECTS or time.monotonic() > end:
                    raise
                redirects += 1
                self.redirects += 1
                self.client.close()
                self.connect(refusal.at)

    def join(self, room):
        answer = self.request("room.join", name=room, displayName="")
        self.room = answer
        return answer

    def enter(self, room, not_on=None):
        """Joins a room, for `until`. Comes in again if the connection was lost. Raises `NotYet` if the person is refused, or if
        the room is on the node `not_on`."""
        try:
            if self.is_closed():
                self.connect(self.node, seconds=1)
            self.join(room)
        except Refused as refusal:
            raise NotYet(f"{self.node} does not let them into the room {room}: {refusal}") from None
        require(self.node != not_on, f"the room {room} is still on {not_on}")

    def come_back(self, action, seconds=20):
        """Connects and lets the person do something, again and again until that works. Returns how long it took."""
        start = time.monotonic()
        pause = threading.Event()
        at = None
        while True:
            try:
                self.connect(at, seconds)
                action(self)
                return time.monotonic() - start
            except Refused as refusal:
                if time.monotonic() - start > seconds:
                    raise
                at = refusal.at or self._sent_to()
                self.client.close()
                pause.wait(0.1)

    def return_to(self, room, seconds):
        """Comes back after the connection was lost, and joins the room again. Returns how long that took."""
        return self.come_back(lambda visitor: visitor.join(room), seconds)

    def _sent_to(self):
        """The node to which the server has sent the person without an answer to a request."""
        sent = [message["at"] for message in self.client.messages if message.get("code") == "elsewhere" and message.get("at")]
        return sent[0] if sent else None

    def listen(self, seconds):
        """Reads what comes, as a browser does, and answers the server's pings. Returns whether the connection is still open."""
        try:
            self.client.wait("nothing", seconds=seconds)
        except Refused as refusal:
            return refusal.code == "no_answer"

    def await_end(self, seconds):
        """Waits until the server ends the connection. Returns how long that took, or None."""
        start = time.monotonic()
        if self.listen(seconds):
            return None
        self.client.close()  # As a browser does. The server counts the connection until then.
        return time.monotonic() - start

    def is_closed(self):
        """Whether the server has ended the connection."""
        try:
            self.client.request("roulette.count", seconds=3.0)
            return False
        except Refused as refusal:
            return refusal.code.startswith("closed")

    def close(self):
        self.client.close()
