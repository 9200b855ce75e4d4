"""Robots that join rooms by name at several nodes, stay there, and measure the media between the nodes."""

import json
import subprocess
import threading

from programs import Failed

# The prefix of the names of their rooms (`RoomLoad`).
ROOM_PREFIX = "bench-"
# A gap that people notice as an interruption of media.
GAP_MILLISECONDS = 1000


class NodeRobots:
    """Robots in rooms, connected to these nodes in turn: the first to the first node, and so on. All of them send and receive, unless
    `shape` says otherwise: arguments of `confab bench sfu`. `visits`: how many come one after the other when the measurement has ended.
    `reads_nodes`: whether CPU time and metrics of the nodes are read, which must live until the end then. Use it in a `with`
    statement, which ends them."""

    def __init__(self, nodes, seconds, shape=("--rooms", "1", "--size", "6"), visits=0, reads_nodes=True):
        self.nodes = nodes
        cluster = nodes[0].cluster
        command = [
            cluster.executable, "bench", "sfu", *shape, "--by-name", "--visits", str(visits), "--seconds", str(seconds), "--json",
            "--data-dir", nodes[0].data]
        for node in nodes:
            command += ["--server", node.url]
            if reads_nodes:
                command += ["--pid", str(node.program.process.pid), "--metrics", node.metrics_url]
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self._errors, self._measures = [], threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stderr:
            self._errors.append(line)
            if line.startswith("Measuring"):
                self._measures.set()
        self._measures.set()  # They have ended.

    def await_measuring(self, seconds=120):
        """Waits until all receive media and the measurement begins."""
        if not self._measures.wait(seconds) or self._process.poll() is not None:
            self._fail("did not begin to measure")

    def _fail(self, what):
        raise Failed(f"The robots {what} (status {self._process.poll()}): {''.join(self._errors)[-500:]}")

    def result(self, seconds=300):
        """What they measured, when they have ended."""
        try:
            self._process.wait(seconds)  # The report fits into the pipe.
            self._reader.join(5)
            return Measured(json.loads(self._process.stdout.read()), self.nodes)
        except (ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._fail("ended without a result")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()


class Measured:
    """A report of `confab bench sfu`."""

    def __init__(self, report, nodes):
        self.report, self.nodes = report, nodes
        # The figures of each node, in order, and of each path from a node's publishers to the subscribers of the same or
        # another node.
        self.by_node, self.paths = report.get("nodes", []), report.get("paths", [])

    def between(self, *nodes):
        """The paths from each of these nodes to each other one."""
        places = {self.nodes.index(node) + 1 for node in nodes}
        return [path for path in self.paths if path["from"] != path["to"] and {path["from"], path["to"]} <= places]

    def inside(self):
        """The paths whose publishers and subscribers are on one node."""
        return [path for path in self.paths if path["from"] == path["to"]]
