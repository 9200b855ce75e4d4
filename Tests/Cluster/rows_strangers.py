"""Rows in which strangers on several nodes meet, and nobody is redirected. Each function is one row; its first line is the title."""

import selectors
import time
from types import SimpleNamespace

from programs import Failed
from rows_letters import quantile
from visitor import Client

# In each round, the two people of one group press Next. The first rounds are not measured: they warm up connections and caches.
ROUNDS, FIRST_ROUNDS = 60, 4
# How much longer the next partner on another node may take than one on the same node.
ADDED_MILLISECONDS = 50
# Less than `roulette.interestWait` and `roulette.rematchWait`, after which the roulette also matches people who share no interest, or who
# have just met.
MATCH_SECONDS = 4


class Stranger(Client):
    """One person, connected to a node without HAProxy. `partner`: the interest that the person shares with the latest partner."""

    def __init__(self, cluster, node, interests):
        super().__init__(SimpleNamespace(host=node.machine.address, port=node.port), cluster.source())
        self.interests, self.partner = interests, None
        # When the person has asked for a partner, and when one came. It is None while the person waits.
        self.asked = self.matched = None

    def search(self, verb, **members):
        self.asked = time.monotonic()
        self.ask(verb, **members)

    def note(self, message):
        if message["type"] == "roulette.ended":
            self.matched = None
        elif message["type"] == "roulette.matched":
            self.matched = time.monotonic()
            shared = message["partner"].get("interests", [])
            if len(shared) != 1 or shared[0] == self.partner:
                raise Failed(f"A stranger met the wrong partner: they share {shared}, and the previous partner shared {self.partner}.")
            self.partner = shared[0]
        elif message["type"] == "error":  # A redirect, for example.
            raise Failed(f"The server refused a stranger: {message}")


class Strangers:
    """Two groups of two people. Each group is on one node. Each person shares one interest with each person of the other group, and none
    with the other person of their own group. So partners are always of different groups. Both people of a group press Next at once. The
    roulette does not match people who have just met, so the pairs change in each round. Use it in a `with` statement."""

    def __init__(self, cluster, nodes):
        self.selector = selectors.DefaultSelector()
        self.groups = ([], [])
        places = range(2)
        try:
            for place in places:
                self._come(0, Stranger(cluster, nodes[0], [f"pair {place}{other}" for other in places]))
                self._come(1, Stranger(cluster, nodes[1], [f"pair {other}{place}" for other in places]))
            for person in self.people:
                person.search("roulette.start", interests=person.interests)
            self._await_partners(self.people)
        except BaseException:
            self.__exit__()
            raise

    def _come(self, group, person):
        self.groups[group].append(person)
        self.selector.register(person.socket.connection, selectors.EVENT_READ, person)

    @property
    def people(self):
        return [person for group in self.groups for person in group]

    def _await_partners(self, asking):
        """Waits until everyone has a partner who came after the people in `asking` asked for one."""
        end = time.monotonic() + MATCH_SECONDS
        start = min(person.asked for person in asking)
        while any(person.matched is None or person.matched < start for person in self.people):
            left = end - time.monotonic()
            if left <= 0:
                raise Failed(f"Not everyone has another partner after {MATCH_SECONDS} s.")
            for key, _ in self.selector.select(left):
                for message in key.data.arrived():
                    key.data.note(message)

    def press_next(self, group):
        """The people of a group press Next. Returns how many seconds each of them waited for the next partner."""
        pressing = self.groups[group]
        for person in pressing:
            person.search("roulette.next")
        self._await_partners(pressing)
        return [person.matched - person.asked for person in pressing]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Otherwise a person whose partner has left would still be waiting when the strangers of the next measurement arrive.
        for person in self.people:
            person.attempt("roulette.stop", seconds=1)
        for person in self.people:
            person.close()
        self.selector.close()


def time_next(cluster, nodes):
    """Returns the seconds that each Next took, with one group on each of these nodes."""
    with Strangers(cluster, nodes) as strangers:
        rounds = [strangers.press_next(number % 2) for number in range(FIRST_ROUNDS + ROUNDS)]
    return [seconds for times in rounds[FIRST_ROUNDS:] for seconds in times]


def next_across_nodes(cluster, report):
    """Strangers press Next: a partner on another node comes at most 50 ms later than one on the same node"""
    cluster.await_relays()
    first, second = cluster.nodes[:2]
    medians = []
    for name, nodes in (("one node", (first, first)), ("across nodes", (first, second))):
        times = time_next(cluster, nodes)
        medians.append(quantile(times, 0.5))
        report.figure(
            f"time to the next partner, {name}", f"p50 {medians[-1]:.1f} ms, p99 {quantile(times, 0.99):.1f} ms, of {len(times)}")
    added = medians[1] - medians[0]
    report.figure("milliseconds that a partner on another node adds, at the median", round(added, 1))
    report.check(added <= ADDED_MILLISECONDS, f"a partner on another node comes at most {ADDED_MILLISECONDS} ms later (median)")


ALL = [next_across_nodes]
for row in ALL:
    row.needs_relays = row.needs_release = True
