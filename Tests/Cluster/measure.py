"""What it costs to spread rooms over the nodes of a cluster (`Benchmarks/cluster`)."""

import os
import statistics
import sys
import time

from cluster import Cluster
from robots import NodeRobots

NODES = 3
# A room has at most 100 people. With these, clients get 450 streams, about as many as 500 viewers of one speaker.
SPANNING_ROOM = ("--publishers", "5", "--subscribers", "90")
ROOMS_OF_TEN = ("--rooms", "10", "--size", "10")
# About the load of each of the three nodes. A node with a smaller load sends fewer packets at a time, so each packet costs more. These
# show how much of the difference is due to that.
SHARE_OF_ROOM = ("--publishers", "5", "--subscribers", "30")
SHARE_OF_ROOMS = ("--rooms", "3", "--size", "10")
# The largest share of the packets that one of three nodes may send, and the largest ratios of CPU time per packet to that on
# one node.
MAX_SHARE, MAX_SPANNING, MAX_SPREAD = 0.4, 1.2, 1.05


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


def quotients(figures, others):
    return [figure / other for figure, other in zip(figures, others)]


class IdleNodes:
    """Measures the CPU time of nodes that have no clients."""

    def __init__(self, nodes):
        self._nodes = nodes
        self._start, self._before = time.monotonic(), self._processor_seconds()

    def _processor_seconds(self):
        return sum(processor_seconds(node.program.process.pid) for node in self._nodes)

    def share(self):
        """Their CPU time since then, in seconds per second."""
        return (self._processor_seconds() - self._before) / (time.monotonic() - self._start)


def processor_seconds(process):
    """The CPU time of all threads of a process."""
    nanoseconds = 0
    for task in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{task}/schedstat") as file:
                nanoseconds += int(file.read().split()[0])
        except OSError:  # The thread has ended.
            pass
    return nanoseconds / 1e9


class Case:
    """Rooms on all nodes, compared with the same rooms on the first one in alternating rounds."""

    def __init__(self, title, shape, share, spread_option, goal):
        self.title, self.shape, self.share, self.spread_option, self.goal = title, shape, share, spread_option, goal
        # The CPU time of a packet in each round, in microseconds: everything on one node, a node's share of it on one node, and
        # everything on all nodes.
        self.alone, self.shared, self.together = [], [], []
        self.lost, self.largest, self.relayed, self.delays = 0, [], [], []

    def measure(self, cluster, seconds):
        self.alone.append(self._measure_one(cluster, seconds, self.shape, True))
        # The work that each node also does without clients is part of every node's share, so that of other nodes does not count here.
        self.shared.append(self._measure_one(cluster, seconds, self.share, False))
        with NodeRobots(cluster.nodes, seconds, (*self.shape, "--spread", self.spread_option)) as robots:
            together = robots.result()
        self.together.append(float(together.report["processorPerPacket"]))
        self.lost += together.report["lostByServer"] + together.report["unexplained"]
        self.largest.append(max(shares(together)))
        self.relayed.append(sum(figures["relayed"] for figures in together.by_node) / max(1, together.report["received"]))
        self.delays.append(together.report["delay99"])
        say(f"{self.title}: {self.alone[-1]:.2f} µs a packet on one node, {self.together[-1]:.2f} on {NODES}")

    @staticmethod
    def _measure_one(cluster, seconds, shape, includes_others):
        """The CPU time of a packet with these rooms on the first node. With `includes_others` it contains the work of the others, which
        have no clients."""
        with NodeRobots(cluster.nodes[:1], seconds, shape) as robots:
            robots.await_measuring()
            idle = IdleNodes(cluster.nodes[1:])
            report = robots.result().report
            others = idle.share() if includes_others else 0
        return float(report["processorPerPacket"]) + others * report["seconds"] * 1e6 / max(1, report["received"])

    def print_rows(self):
        row(f"{self.title}, one node", f"{spread(self.alone)} µs a packet")
        row(f"{self.title}, {NODES} nodes", f"{spread(self.together)} µs a packet; 99 of 100 within {spread(self.delays)} ms")
        row(f"{self.title}: {NODES} nodes ÷ one", spread(quotients(self.together, self.alone)), f"at most {self.goal}")
        row(f"{self.title}: {NODES} nodes ÷ one node with a third of the load", spread(quotients(self.together, self.shared)))
        row(f"{self.title}: largest share of the packets that a node sends", spread(self.largest),
            f"at most {MAX_SHARE}" if self.spread_option == "clients" else "")
        row(f"{self.title}: packets between nodes for each to a client", spread(self.relayed))
        row(f"{self.title}: packets that the nodes lost", self.lost, 0)


def run(executable):
    rounds, seconds = (int(os.environ[f"CONFAB_BENCH_{name}"]) for name in ("ROUNDS", "SECONDS"))
    cases = [
        Case("one room, 5 → 90", SPANNING_ROOM, SHARE_OF_ROOM, "clients", MAX_SPANNING),
        Case("ten rooms of ten", ROOMS_OF_TEN, SHARE_OF_ROOMS, "rooms", MAX_SPREAD)]
    with Cluster(executable, NODES, say=say, has_relays=True) as cluster:
        cluster.await_relays()
        for _ in range(rounds):
            for case in cases:
                case.measure(cluster, seconds)
    for case in cases:
        case.print_rows()
