"""Groups of visitors: in a room, in chats with strangers, in calls."""

import copy
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from programs import require, until
from visitor import Refused, Visitor

ROOM = "kitchen"
# The room of the two browsers.
PARLOR = "parlor"
# Everyone who was on a node that failed talks again within this time.
BACK_SECONDS = 6


def together(visitors, action):
    """Lets all do something at the same time, and returns the results in order."""
    visitors = list(visitors)
    with ThreadPoolExecutor(max(1, len(visitors))) as pool:
        return list(pool.map(action, visitors))


def node_of(cluster, name):
    return next(node for node in cluster.nodes if node.name == name)


def others_of(cluster, node):
    return [other for other in cluster.nodes if other is not node]


def browsers_node(cluster):
    """The node on which the browsers' room is."""
    number = until(
        lambda: require(cluster.redis.owner_of_room(PARLOR), f"Redis does not say where the room {PARLOR} is"), 10)
    return cluster.nodes[number - 1]


def current_life(cluster, node):
    """The number of the node's life, or None if it has been declared dead."""
    rows = cluster.sql(f"SELECT max(life) FROM node WHERE node = {node.number} AND NOT fenced")
    return int(rows[0][0]) if rows and rows[0][0] else None


def lives_of(cluster, nodes=None):
    """The lives of these nodes, or of all."""
    return {node.name: current_life(cluster, node) for node in nodes or cluster.nodes}


def crowds_on(cluster, nodes, size=4):
    """A crowd on each of these nodes."""
    return [Crowd(cluster, node, f"room of {node.name}", size) for node in nodes]


def room_of_ten(cluster):
    """Connects ten people through all nodes, and lets them join one room. Returns them."""
    entries = [node.name for node in cluster.nodes]
    visitors = together(range(10), lambda index: Visitor(cluster, entries[index % len(entries)]))
    together(visitors, lambda visitor: visitor.join(ROOM))
    return visitors


def search(visitor):
    """Searches for a stranger, at another node if the server says so. Raises `Refused` if none is found."""
    visitor.request("roulette.start")
    end = time.monotonic() + 15
    while time.monotonic() < end:
        try:
            visitor.client.wait("roulette.matched", seconds=0.5)
            return
        except Refused as refusal:
            if refusal.code != "no_answer":
                raise
        sent = visitor.client.find("error", lambda error: error.get("code") == "elsewhere" and error.get("at"))
        if sent:
            visitor.redirects += 1
            visitor.client.close()
            visitor.connect(sent["at"])
            visitor.request("roulette.start")
    raise Refused("no_partner", f"no stranger was found on {visitor.node} within 15 s")


class Room:
    """People in a room of one node."""

    def __init__(self, cluster, node, name, size=4):
        self.name = name
        self.members = [Visitor(cluster, node.name) for _ in range(size)]
        self.members[0].join(name)
        together(self.members[1:], lambda member: member.join(name))

    def works(self):
        """Whether the room answers everyone."""
        return all(answer == "ok" for answer in together(self.members, lambda one: one.client.attempt("room.react", reaction="?")))

    def come_back(self, seconds=20):
        return together(self.members, lambda member: member.return_to(self.name, seconds))


class Chats:
    """Pairs of strangers, at the node where they have met."""

    def __init__(self, cluster, node, pairs=2):
        self.members = [Visitor(cluster, node.name) for _ in range(2 * pairs)]
        together(self.members, search)

    def works(self):
        """Whether nobody's partner has left."""
        open_ = together(self.members, lambda one: not one.is_closed())
        return all(open_) and not any(one.client.find("roulette.ended") for one in self.members)

    def come_back(self, seconds=20):
        return together(self.members, lambda member: member.come_back(search, seconds))


class Call:
    """Two people in a call. `continues`: whether the call went on after its node was lost."""

    # The new owner of a lost node's calls needs a moment to read them, so `not_found` counts after this time.
    UNKNOWN_SECONDS = 1.5

    def __init__(self, cluster, node):
        self.members = caller, callee = [Visitor(cluster, node.name) for _ in range(2)]
        self.continues = True
        them = [member.request("presence.appear", name="")["personId"] for member in self.members]
        self.id = caller.request("call.start", personId=them[1], video=False)["callId"]
        callee.client.wait("call.incoming")
        accepted = callee.request("call.accept", callId=self.id, video=False)
        for member, answer in ((callee, accepted), (caller, caller.client.wait("call.accepted"))):
            self._enter(member, answer)

    @staticmethod
    def _enter(member, answer):
        member.request("session.join", sessionId=answer["sessionId"], token=answer["token"])

    def works(self):
        """Whether the call continues and both can change it. A call that was lost does not count."""
        if not self.continues:
            return True
        answers = together(self.members, lambda one: one.client.attempt("call.update", callId=self.id, video=False))
        return all(answer == "ok" for answer in answers) and not any(one.client.find("call.ended") for one in self.members)

    def come_back(self, seconds=20):
        """Both rejoin the call, or hear that it is not on their node."""
        def back(member):
            unknown = None

            def again(member):
                nonlocal unknown
                member.request("presence.appear")
                try:
                    self._enter(member, member.request("call.rejoin", callId=self.id))
                except Refused as refusal:
                    unknown = unknown or time.monotonic()
                    if refusal.code != "not_found" or time.monotonic() - unknown < self.UNKNOWN_SECONDS:
                        raise
                    self.continues = False
            return member.come_back(again, seconds)
        return together(self.members, back)


class Crowd:
    """A room, chats and a call on one node. Either all of them continue while something else fails, or they come back."""

    def __init__(self, cluster, node, room, size=4, pairs=1):
        self.node, self.room = node, room
        self.groups = {"room": Room(cluster, node, room, size), "chats": Chats(cluster, node, pairs), "call": Call(cluster, node)}

    @property
    def call_continues(self):
        """Whether the call went on. It is lost if its two people come back to different nodes (docs/cluster.md)."""
        return self.groups["call"].continues

    def part(self, name, members, node):
        """These members of one group, as a crowd on this node."""
        crowd, group = copy.copy(self), copy.copy(self.groups[name])
        crowd.node, crowd.groups, group.members = node, {name: group}, members
        return crowd

    @property
    def members(self):
        return [member for group in self.groups.values() for member in group.members]

    def broken(self):
        """Returns the names of the groups that do not work any more: an empty list is good."""
        return [name for name, group in self.groups.items() if not group.works()]

    def listen(self, seconds):
        """Lets them read for a while, so that the server does not take them for gone. Returns whether all are still connected."""
        return all(together(self.members, lambda member: member.listen(seconds)))

    def are_connected(self):
        return not any(together(self.members, lambda member: member.is_closed()))

    def come_back(self, seconds=20):
        """The longest time of each group until it was back, in seconds."""
        return dict(together(self.groups.items(), lambda group: (group[0], max(group[1].come_back(seconds)))))

    def come_back_after_end(self, seconds=60):
        """Waits until the server or HAProxy ends their connections, and lets them come back. Returns the times since the call."""
        start = time.monotonic()

        def back(named):
            name, group = named
            together(group.members, lambda member: member.await_end(seconds))
            group.come_back(seconds)
            return name, time.monotonic() - start
        return dict(together(self.groups.items(), back))

    def close(self):
        for member in self.members:
            member.close()


@contextmanager
def listening(*crowds):
    """Lets these crowds read what comes during the block, as browsers do. Otherwise they answer no pings, and the server gives them
    up."""
    members = [member for crowd in crowds for member in crowd.members]
    ended = threading.Event()

    def listen(member):
        while not ended.is_set() and member.listen(0.5):
            pass
    with ThreadPoolExecutor(len(members)) as pool:
        done = [pool.submit(listen, member) for member in members]
        try:
            yield
        finally:
            ended.set()
    for one in done:
        one.result()


def figures(times):
    return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
