"""What several rows set up, and what they check alike."""

import time

from people import ROOM, Crowd, browsers_node, crowds_on, current_life, figures, lives_of, others_of
from programs import require


class Scene:
    """A node on which the two browsers and a crowd are, so that a row can let it fail, and a crowd on each of the other nodes."""

    def __init__(self, cluster, browsers, size=4, pairs=1):
        self.cluster, self.browsers = cluster, browsers
        self.node = browsers_node(cluster)
        self.crowd = Crowd(cluster, self.node, ROOM, size, pairs)
        self.others = crowds_on(cluster, others_of(cluster, self.node))
        self.life = current_life(cluster, self.node)
        # When the node is about to fail.
        self.moment = time.time()

    def check_return(self, report, times, limit):
        """Checks that everyone who was on the node is back within `limit` seconds, and that nobody on the others has noticed.
        `times`: when each group of the crowd was back."""
        silence = self.browsers.await_return(self.moment)
        report.figure("seconds until back", figures(times))
        report.figure("seconds without media in the two browsers", round(silence, 2))
        report.figure("the call went on", "yes" if self.crowd.call_continues else "no, its two people came to different nodes")
        report.check(max(*times.values(), silence) < limit, f"everyone on it talks again within {limit} s")
        report.check(not any(other.broken() for other in self.others), "rooms, chats and calls of the other nodes continue")

    def await_another_life(self, report):
        await_another_life(self.cluster, self.node, self.life, report)


def await_another_life(cluster, node, life, report):
    """Checks that a node whose life has ended begins another one, and waits until it is ready."""
    def require_another():
        now = current_life(cluster, node)
        require(now, f"{node.name} has no life that is not fenced")
        require(now != life, f"{node.name} still has the life {life}")
    report.measure("the node begins another life", require_another, 20)
    node.await_ready()


def check_lives(cluster, lives, report, expectation="no node was declared dead"):
    """Checks that nodes still have these lives."""
    now = {node.name: current_life(cluster, node) for node in cluster.nodes if node.name in lives}
    report.check(lives == now, expectation + ("" if lives == now else f" (lives were {lives}, and are {now})"))


def check_media(browsers, since, report, when=""):
    """Checks that the browsers' media has had no gap of a second. `when` is added to the sentence."""
    silence = max(browsers.silences(since))
    report.figure(
        f"longest time without media in the two browsers{when}",
        f"{silence:.2f} (longest time in which a browser did not answer: {browsers.blindness(since):.2f})")
    report.check(silence < 1, f"the browsers' media has no gap of 1 s{when}")


class Undisturbed:
    """A crowd on each node and the two browsers, none of which may notice that an engine fails."""

    def __init__(self, cluster, browsers):
        self.cluster, self.browsers = cluster, browsers
        self.crowds = crowds_on(cluster, cluster.nodes)
        self.lives = lives_of(cluster)
        # When the engine is about to fail.
        self.moment = time.time()

    def check(self, report):
        check_lives(self.cluster, self.lives, report)
        report.check(all(crowd.are_connected() for crowd in self.crowds), "nobody has lost the connection")
        report.check(not any(crowd.broken() for crowd in self.crowds), "rooms, chats and calls continue")
        check_media(self.browsers, self.moment, report)
