"""What it costs to spread rooms over the nodes of a cluster (`Benchmarks/cluster`)."""

import os
import statistics
import sys

from cluster import Cluster
from robots import NodeRobots

NODES = 3
# A room has at most 100 people. With these, clients get 450 streams, about as many as 500 viewers of one speaker.
SPANNING_ROOM = ("--publishers", "5", "--subscribers", "90")
ROOMS_OF_TEN = ("--rooms", "10", "--size", "10")
# The most of the packets that one of three nodes may send, and how much more CPU time a packet may need than on one node.
MOST_SHARE, MOST_SPANNING, MOST_SPREAD = 0.4, 1.2, 1.05


def say(text):
    print(text, file=sys.stderr, flush=True)


def row(what, figure, goal=""):
    print(f"| {what} | {figure} | {goal} |", flush=True)


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def shares(measured):
    """The share of all packets that each node has sent, to clients and to other nodes."""
    sent = [figures["forwarded"] + figures["relayed"] for figures in measured.by_node]
    return [count / max(1, sum(sent)) for count in sent]


class Case:
    """Rooms on all nodes, compared with the same rooms on the first one in alternating rounds."""

    def __init__(self, title, shape, spread_option, goal):
        self.title, self.shape, self.spread_option, self.goal = title, shape, spread_option, goal
        # The CPU time of a packet in each round, in microseconds.
        self.alone, self.together = [], []
        self.lost, self.largest, self.relayed, self.delays = 0, [], [], []

    def measure(self, cluster, seconds):
        alone = NodeRobots(cluster.nodes[:1], seconds, self.shape).result()
        together = NodeRobots(cluster.nodes, seconds, (*self.shape, "--spread", self.spread_option)).result()
        self.alone.append(float(alone.report["processorPerPacket"]))
        self.together.append(float(together.report["processorPerPacket"]))
        self.lost += together.report["lostByServer"] + together.report["unexplained"]
        self.largest.append(max(shares(together)))
        self.relayed.append(sum(figures["relayed"] for figures in together.by_node) / max(1, together.report["received"]))
        self.delays.append(together.report["delay99"])
        say(f"{self.title}: {self.alone[-1]:.2f} µs a packet on one node, {self.together[-1]:.2f} on {NODES}")

    def print_rows(self):
        row(f"{self.title}, one node", f"{spread(self.alone)} µs a packet")
        row(f"{self.title}, {NODES} nodes", f"{spread(self.together)} µs a packet; 99 of 100 within {spread(self.delays)} ms")
        ratios = [together / alone for together, alone in zip(self.together, self.alone)]
        row(f"{self.title}: {NODES} nodes ÷ one", spread(ratios), f"at most {self.goal}")
        row(f"{self.title}: largest share of the packets that a node sends", spread(self.largest),
            f"at most {MOST_SHARE}" if self.spread_option == "clients" else "")
        row(f"{self.title}: packets between nodes for each to a client", spread(self.relayed))
        row(f"{self.title}: packets that the nodes lost", self.lost, 0)


def run(executable):
    rounds, seconds = (int(os.environ.get(f"CONFAB_BENCH_{name}", default)) for name, default in (("ROUNDS", 3), ("SECONDS", 10)))
    cases = [
        Case("one room, 5 → 90", SPANNING_ROOM, "clients", MOST_SPANNING),
        Case("ten rooms of ten", ROOMS_OF_TEN, "rooms", MOST_SPREAD)]
    with Cluster(executable, NODES, say=say, has_relays=True) as cluster:
        cluster.await_relays()
        for _ in range(rounds):
            for case in cases:
                case.measure(cluster, seconds)
    for case in cases:
        case.print_rows()
