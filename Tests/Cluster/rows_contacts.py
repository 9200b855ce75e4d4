"""Rows about contacts who are on different nodes. Each function is one row; its first line is the title."""

import time

from people import Call, node_of
from programs import require, until
from visitor import Refused

# The time within which a waiting person sees a contact come or go.
SEEN_SECONDS = 2
# How often each of two contacts leaves and appears in turn, for the figure. A client may send 100 requests at once.
TURNS = 45
# Pairs of contacts whose letters are measured: more than 1000 letters.
PAIRS = 6


class Contacts:
    """Two people who became contacts in a call on the first node, and are now online, on two nodes or on one."""

    def __init__(self, cluster, names):
        call = Call(cluster, node_of(cluster, names[0]))
        self.members = self.one, self.other = call.members
        for member in self.members:
            member.request("contact.keep", callId=call.id)
        for member in self.members:
            member.client.wait("contact.added")
        self.one.request("call.end", callId=call.id)
        # Both connect again, so that each has the budget of a new connection.
        for member in self.members:
            member.client.close()
        self.ids = [self.enter(member, name) for member, name in zip(self.members, names)]
        for member in self.members:
            until(lambda: self.require_online(member), 10)
            while member.client.find("contact.changed"):
                pass

    @staticmethod
    def enter(member, name):
        """Comes to this node, as soon as the former one has released the person. Returns the person's id."""
        def come():
            member.connect(name)
            if member.node != name:
                member.client.close()
            require(member.node == name, f"they are still on {member.node}, and not on {name}")
        until(come, 10)
        return member.request("presence.appear")["personId"]

    def partner_id(self, member):
        return self.ids[1] if member is self.one else self.ids[0]

    def require_online(self, member, is_online=True):
        """Raises `NotYet` unless the contact of this member is online, or is not."""
        people = {person["personId"]: person["online"] for person in member.request("contact.list")["people"]}
        seen = people.get(self.partner_id(member))
        require(seen == is_online, f"on {member.node}, the contact's online is {seen}")

    def notice(self, sender, verb):
        """Lets one appear or leave. Returns how many seconds it took until the other one's client had heard of it."""
        receiver = self.other if sender is self.one else self.one
        is_online, person = verb == "presence.appear", self.partner_id(receiver)
        start = time.monotonic()
        number = sender.client.ask(verb)
        receiver.client.wait(
            "contact.changed",
            lambda news: news["person"]["personId"] == person and news["person"]["online"] == is_online)
        seconds = time.monotonic() - start
        sender.client.answer(number)
        return seconds

    def measure(self):
        """Returns the seconds of each letter."""
        return [
            self.notice(member, verb) for member in self.members for _ in range(TURNS)
            for verb in ("presence.leave", "presence.appear")]

    def close(self):
        for member in self.members:
            member.close()


def measure(cluster, names, pairs):
    """Returns the seconds of all letters between so many pairs of contacts on these two nodes."""
    times = []
    for _ in range(pairs):
        contacts = Contacts(cluster, names)
        times += contacts.measure()
        contacts.close()
    return times


def quantiles(times):
    ordered = sorted(times)
    p50, p99 = (ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 for share in (0.5, 0.99))
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, of {len(ordered)}"


def meet_a_contact(cluster, report):
    """Two contacts on two nodes see each other come and go, and a call from one rings at the other: the caller moves"""
    names = [node.name for node in cluster.nodes][:2]
    contacts = Contacts(cluster, names)
    one, other = contacts.members
    report.check([one.node, other.node] == names, "the two are on two nodes")
    for member in contacts.members:
        report.figure(f"seconds until {member.node} has reported who left", round(contacts.notice(member, "presence.leave"), 4))
        contacts.notice(member, "presence.appear")
    other.client.close()
    report.measure("one who closes the page is offline", lambda: contacts.require_online(one, False), SEEN_SECONDS)
    contacts.enter(other, names[1])
    report.measure("one who comes back is online", lambda: contacts.require_online(one), SEEN_SECONDS)

    redirects = one.redirects
    call = move_and_call(one, contacts.ids[1])
    report.check(one.redirects == redirects + 1 and one.node == other.node, "the caller moves to the contact's node at once")
    incoming = other.client.wait("call.incoming")
    report.check(incoming["callId"] == call["callId"], "it rings at the contact")
    other.request("call.accept", callId=call["callId"], video=False)
    report.check(one.client.wait("call.accepted")["callId"] == call["callId"], "the contact accepts")
    contacts.close()

    between = measure(cluster, names, PAIRS)
    report.figure("from a contact's request to the client on another node", quantiles(between))
    # Without letters: what the clients, HAProxy and the rules take.
    report.figure("the same on one node", quantiles(measure(cluster, [names[0], names[0]], 2)))


def move_and_call(caller, person):
    """Calls a person, at the node that the server names, as the SDKs do: they appear there before. Returns the answer."""
    try:
        return caller.client.request("call.start", personId=person, video=False)
    except Refused as refusal:
        if refusal.code != "elsewhere" or not refusal.at:
            raise
        caller.client.close()
        caller.redirects += 1
        caller.connect(refusal.at)
        caller.request("presence.appear")
        return caller.client.request("call.start", personId=person, video=False)


ALL = [meet_a_contact]
