"""Rows about the letters between nodes while many are posted. Each function is one row; its first line is the title."""

import json
import os
import subprocess
import sys
import time

from programs import Failed, last, require, until
from robots import GAP_MILLISECONDS, NodeRobots

# Pairs in each direction between two nodes, and on one node for comparison. A signal from the node without the room needs two
# letters: the request and its answer. A signal to that node needs one letter.
PAIRS, PAIRS_ON_ONE_NODE = 20, 5
SIGNALS_PER_SECOND = 17
# The time of a letter: the median and the 99th percentile.
MEDIAN_MILLISECONDS, MAX_MILLISECONDS = 1, 5
# The same limit as for opening a room in `fail_over_redis`.
FAILOVER_SECONDS = 8
# The talkers post 1020 a second, but the measured time includes the wait for late signals.
FEWEST_LETTERS_PER_SECOND = 900


class Talkers:
    """People in one room who send signals to each other, between two nodes and on the room's own (talkers.py). Use it in a `with`
    statement."""

    def __init__(self, cluster, nodes, seconds):
        plan = {
            "nodes": [[node.machine.address, node.port] for node in nodes], "room": "talk",
            "sources": [cluster.source() for _ in range(50)], "rate": SIGNALS_PER_SECOND, "seconds": seconds,
            "groups": [
                # The first who joins is on the first node, so the room is there.
                {"name": "one node", "from": 0, "to": 0, "pairs": PAIRS_ON_ONE_NODE},
                {"name": "to the room's node", "from": 1, "to": 0, "pairs": PAIRS},
                {"name": "from the room's node", "from": 0, "to": 1, "pairs": PAIRS}]}
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "talkers.py")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", sys.executable, "-B", script, json.dumps(plan)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        if self._process.stdout.readline() != "talking\n":
            self._fail()

    def _fail(self):
        self._process.kill()
        raise Failed(f"The people in the room do not send signals: {self._process.communicate()[1][-800:]}")

    def result(self):
        """What they have counted, when all signals have arrived or are late."""
        line = self._process.stdout.readline()
        if not line:
            self._fail()
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()


def quantile(times, share):
    """The time in milliseconds that this share of the times does not exceed."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


def letters_of(nodes):
    """How many letters these nodes have posted, posted again, and lost."""
    metrics = [node.metrics() for node in nodes]
    return [
        sum(one.get(f"confab_cluster_{name}_total", 0) for one in metrics)
        for name in ("letters_posted", "entries_reposted", "letter_losses")]


def check_rate(report, letters, seconds):
    rate = letters / seconds
    report.figure("letters a second", round(rate))
    report.check(rate >= FEWEST_LETTERS_PER_SECOND, f"the nodes post at least {FEWEST_LETTERS_PER_SECOND} letters a second")


def check_signals(report, counted):
    report.figure("signals", counted["sent"])
    report.check(counted["lost"] == 0, f"no signal is lost ({counted['lost']} were)")
    report.check(counted["twice"] == 0, f"no signal arrives twice ({counted['twice']} did)")
    report.check(counted["disordered"] == 0, f"signals of one person stay in order ({counted['disordered']} did not)")
    report.check(not counted["refusals"], f"no request is refused ({counted['refusals'] or 'none was'})")


def post_letters(cluster, report):
    """Two nodes post 1000 letters a second to each other: a letter takes less than 1 ms at the median, and 99 of 100 less than 5 ms"""
    cluster.await_relays()
    nodes = cluster.nodes[:2]
    with Talkers(cluster, nodes, 20) as talkers:
        start, (posted, _, lost) = time.monotonic(), letters_of(nodes)
        counted = talkers.result()
        seconds, after = time.monotonic() - start, letters_of(nodes)
    check_rate(report, after[0] - posted, seconds)
    check_signals(report, counted)
    report.check(after[2] == lost, "no letters between the nodes were lost")
    times = counted["times"]
    # The time that clients, rules and sockets need without a letter.
    alone = quantile(times["one node"], 0.5)
    for name, taken in times.items():
        p50, p99 = quantile(taken, 0.5), quantile(taken, 0.99)
        report.figure(f"signals, {name}", f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, of {len(taken)}")
        if name != "one node":
            report.check(p50 - alone < MEDIAN_MILLISECONDS, f"a letter {name} takes less than {MEDIAN_MILLISECONDS} ms (median)")
            report.check(p99 - alone < MAX_MILLISECONDS, f"99 of 100 letters {name} take less than {MAX_MILLISECONDS} ms")


def fail_over_under_letters(cluster, report):
    """The primary Redis is killed while 1000 letters a second are posted: none is lost, none arrives twice, and media continues"""
    cluster.await_relays()
    cluster.redis.await_sentinels()
    nodes = cluster.nodes[:2]
    # Longer than all the talkers need.
    with NodeRobots(nodes, 60, ("--rooms", "1", "--size", "2"), reads_nodes=False) as robots:
        robots.await_measuring()
        with Talkers(cluster, nodes, 10) as talkers:
            start, (posted, reposted, lost) = time.monotonic(), letters_of(nodes)
            last(3, start)  # So that the failover meets a steady stream.
            before, killed = letters_of(nodes)[0], cluster.redis.primary
            seconds = time.monotonic() - start
            for program in killed.programs:
                program.kill()
            counted = talkers.result()
        after = letters_of(nodes)
        report.figure("entries that were posted again", round(after[1] - reposted))
        check_rate(report, before - posted, seconds)
        check_signals(report, counted)
        report.check(after[2] == lost, "no letters between the nodes were lost")
        longest = max(max(times) for name, times in counted["times"].items() if name != "one node")
        report.figure("seconds that the slowest signal took", round(longest, 2))
        report.check(longest < FAILOVER_SECONDS, f"all arrive within {FAILOVER_SECONDS} s")
        # Otherwise the primary was killed after the last letter was posted.
        report.check(longest > 0.5, "signals had to wait for the failover")
        gaps = [path["longestGap"] for path in robots.result().between(*nodes)]
        report.figure("longest time without a packet of a video across nodes, in ms", [round(gap) for gap in gaps])
        report.check(gaps and max(gaps) < GAP_MILLISECONDS, f"media has no gap of {GAP_MILLISECONDS} ms")
    for program in killed.programs:
        program.start()
    until(lambda: require(len(cluster.redis.primaries) == 1, "there is not one primary"), 30)


ALL = [post_letters, fail_over_under_letters]
for row in ALL:
    row.needs_relays = True
post_letters.needs_release = True
