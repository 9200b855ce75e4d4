"""The machine's clock is wrong for some seconds, or the machine sleeps."""

import threading
import time

from client import Client, Refused
from clock_shift import Clock, ShiftLibrary
from report import Impossible, until
from server import Server

TITLE = "a clock that is moved deletes nothing and changes no grace period"

HOUR, YEAR = 3600, 366 * 86400
# connection.resumeGrace, shortened, and how far from it a drop may end.
GRACE, TOLERANCE = 3, 2
CREATOR, OUTCAST, BANNED = "127.0.0.2", "127.0.0.3", "127.0.0.66"

# Each runs on a server of its own: the positions of the clock, in seconds from the right time.
SCENARIOS = {
    "five seconds": [5, 0, -5, 0],
    "an hour": [HOUR, 0, -HOUR, 0],
    "a year": [YEAR, 0, -YEAR, 0],
}
# Seconds that the machine sleeps, one sleep after the other.
SLEEPS = [60, HOUR]


def run(report):
    with ShiftLibrary() as library:
        scenarios = [Moved(library, title, positions) for title, positions in SCENARIOS.items()]
        scenarios.append(Asleep(library, "a machine that sleeps", SLEEPS))
        threads = [threading.Thread(target=scenario.play, daemon=True) for scenario in scenarios]
        for thread in threads:
            thread.start()
        for thread, scenario in zip(threads, scenarios):
            thread.join(timeout=90)
            scenario.report_to(report, is_over=not thread.is_alive())


class Scenario:
    """One server whose clock moves. Several run at once, so each keeps its lines until all are done."""

    def __init__(self, library, title, moves):
        self.library, self.title, self.moves, self.notes = library, title, moves, []

    def sent(self, text):
        self.notes.append(lambda report: report.sent(f"{self.title}: {text}"))

    def check(self, holds, text):
        self.notes.append(lambda report: report.check(holds, f"{self.title}: {text}"))

    def report_to(self, report, is_over):
        for note in self.notes:
            note(report)
        report.check(is_over, f"{self.title}: the attack runs to its end")

    def play(self):
        self.clock = Clock(self.library)
        try:
            settings = {"connection.resumeGrace": f"{GRACE}s"}
            with Server(settings, environment=self.clock.environment) as server:
                self.server = server
                self.store()
                for move in self.moves:
                    self.drop_while(move)
                self.judge_live()
                server.environment, server.ahead = {}, 0
                server.restart()
                self.judge_stored("after a restart with the right clock")
        except (Impossible, Refused, OSError) as problem:
            self.check(False, f"the attack runs to its end; it stopped with {problem!r}")

    # What is stored

    def store(self):
        server = self.server
        self.creator = Client(server, CREATOR)
        self.creator.join("Choir", "Ada", options={"persistent": True})
        server.create_room("Orchestra")
        self.outcast = Client(server, OUTCAST)
        self.outcast.join("Choir", "Outcast")
        self.creator.request("room.remove", connectionId=self.outcast.id, ban=True)
        server.command("ban", "add", BANNED, "--expires", "30d")
        if not until(lambda: self.visit(BANNED) == "banned", 5):
            raise Impossible("the ban does not take effect")
        self.friends = [Client(server, "127.0.0.4"), Client(server, "127.0.0.5")]
        for friend in self.friends:
            friend.request("presence.appear", name="Friend")
            friend.request("roulette.start", mode="text")
        for friend in self.friends:
            friend.request("contact.keep", matchId=friend.wait("roulette.matched")["matchId"])
        for friend in self.friends:
            friend.wait("contact.added")
            friend.request("roulette.stop")
        if not self.clock.readings:
            raise Impossible("the server does not read the clock through the preloaded library")
        self.sent(f"two persistent rooms, a ban in one, a ban of an address for 30 days, a contact; "
                  f"the server has read the moved clocks {self.clock.readings} times")

    def visit(self, source, identity=None):
        try:
            Client(self.server, source, identity, seconds=3).close()
            return "welcome"
        except Refused as refusal:
            return refusal.code

    # Grace periods

    def drop_while(self, move):
        """Drops a member, moves the clock, and measures when the others are notified that the member has left."""
        member = Client(self.server, "127.0.0.6")
        member.join("Choir", "Dropping")
        member.drop()

        def is_member(state):
            return lambda message: message["connectionId"] == member.id and message["state"] == state

        self.creator.wait("room.person", is_member("reconnecting"))
        start = time.monotonic()
        moved = self.move(move)
        left = until(lambda: self.bustle() or self.creator.find("room.person", is_member("left")),
                     GRACE + TOLERANCE + 0.5, pause=0.1)
        seconds = time.monotonic() - start
        self.sent(f"a member drops, then {moved}")
        ended = f"after {seconds:.1f} s" if left else f"not within {seconds:.1f} s"
        self.check(left and abs(seconds - GRACE) <= TOLERANCE, f"the grace period of {GRACE} s ends in time: {ended}")

    def bustle(self):
        """Makes the server store something, because a server without events may not look at its clocks."""
        client = Client(self.server, "127.0.0.7", seconds=3)
        client.attempt("presence.appear", name="Passing by")
        client.close()

    # What is left

    def judge_live(self):
        # Also whether the server accepts tokens, which are valid for minutes.
        until(lambda: isinstance(self.rooms(), list), 3, pause=0.2)
        self.judge_stored("at once")

    def judge_stored(self, when):
        rooms = self.rooms()
        self.check(rooms == ["Choir", "Orchestra"], f"{when}, an application finds both rooms: {rooms}")
        outcast = Client(self.server, OUTCAST, self.outcast.identity)
        answer = outcast.attempt("room.join", name="Choir", displayName="Outcast")
        self.check(answer == "room_banned", f"{when}, the ban in a room holds: {answer}")
        answer = self.visit(BANNED)
        self.check(answer == "banned", f"{when}, the ban of an address holds: {answer}")
        friend = Client(self.server, "127.0.0.4", self.friends[0].identity)
        friend.request("presence.appear")
        people = friend.request("contact.list")["people"]
        self.check(len(people) == 1, f"{when}, the contact is there: {len(people)} of 1")

    def rooms(self):
        """Returns the names of all rooms, or the code of the error."""
        status, answer = self.server.rest("GET", "/v1/rooms")
        return sorted(room["name"] for room in answer["rooms"]) if status == 200 else answer["code"]


class Moved(Scenario):
    """The time of day is set, and set back."""

    def move(self, seconds):
        self.clock.set(seconds)
        if not seconds:
            return "the clock is set right"
        return f"the clock is set {abs(seconds)} s {'ahead' if seconds > 0 else 'back'}"


class Asleep(Scenario):
    """The machine sleeps. Afterwards the time of day is right."""

    def move(self, seconds):
        self.clock.sleep(seconds)
        self.server.ahead += seconds
        return f"the machine sleeps for {seconds} s"
