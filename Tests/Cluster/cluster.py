"""Starts a cluster from Debian's packages: PostgreSQL, Redis, nodes, and HAProxy in front of them.

Each program has its data in one temporary folder, and ends with this process.
"""

import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from engines import REDIS_PORT, Postgres, RedisServers
from machines import Loopback, find_command
from programs import Failed, Missing, Program, http_get, require

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The page's name. Browsers trust every name under `localhost`, and use the camera only on such pages.
PAGE = "confab.localhost"
PAGE_PORT = 8080
METRICS_PORT = 9464
# A node that starts may have to wait until the life of its predecessor is over.
READY_SECONDS = 60
# For robots and letter tests, which connect many clients from few addresses, and for strangers who press Next quickly.
NO_LIMITS = {
    **{f"CONFAB_LIMITS_{name}": "1000000" for name in (
        "REQUESTS_PER_SECOND", "REQUEST_BURST", "PERSON_REQUESTS_PER_SECOND", "PERSON_REQUEST_BURST", "HANDSHAKES_PER_SECOND",
        "HANDSHAKE_BURST", "SOCKETS_PER_ADDRESS", "ADDRESS_MESSAGES_PER_SECOND", "ADDRESS_MESSAGE_BURST")},
    "CONFAB_ROULETTE_SKIP_WINDOW": "0s"}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Node:
    """A Confab server."""

    def __init__(self, cluster, number, machine, port):
        self.cluster, self.number, self.machine, self.port = cluster, number, machine, port
        self.name = f"n{number}"
        self.data = os.path.join(cluster.folder, f"node{number}")
        os.mkdir(self.data, 0o700)
        if number > 1:  # All nodes have the same project and the same keys.
            for file in ("project.json", "server.key", "push.pem"):
                shutil.copy(os.path.join(cluster.nodes[0].data, file), self.data)
        self.metrics_port = free_port() if cluster.is_local else METRICS_PORT
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CONFAB_")}
        self.program = Program(
            cluster.folder, f"node{number}", [cluster.executable, "serve"], machine, {
                **inherited,
                "CONFAB_CLUSTER_NODE": str(number), **cluster.redis.settings,
                "CONFAB_STORAGE_URL": cluster.postgres.url, "CONFAB_DATA_DIRECTORY": self.data,
                "CONFAB_HOST": machine.address, "CONFAB_PORT": str(port), "CONFAB_METRICS_ENABLED": "false",
                "CONFAB_MEDIA_PORT": str(cluster.media_port),
                **({} if cluster.is_local else {"CONFAB_MEDIA_ADDRESS": machine.address}),
                "CONFAB_TRUSTED_PROXIES": cluster.proxy_machine.address, "CONFAB_PUBLIC_URL": cluster.url,
                **(self._relay_settings() if cluster.has_relays else {}),
            })

    def _relay_settings(self):
        return {
            **NO_LIMITS, "CONFAB_CLUSTER_RELAYS": "true", "CONFAB_MEDIA_ADDRESS": self.machine.address,
            "CONFAB_RECORDING_MIN_FREE_SPACE": "64MiB",
            "CONFAB_METRICS_ENABLED": "true", "CONFAB_METRICS_HOST": self.machine.address,
            "CONFAB_METRICS_PORT": str(self.metrics_port)}

    @property
    def url(self):
        """The node's own URL, without HAProxy."""
        return f"http://{self.machine.address}:{self.port}"

    @property
    def metrics_url(self):
        return f"http://{self.machine.address}:{self.metrics_port}/metrics"

    def metrics(self):
        """The values of the node's metrics, by name and labels. Raises `NotYet` if it does not answer. For clusters with relays."""
        status, text = http_get(self.machine.address, self.metrics_port, "/metrics")
        require(status == 200, f"{self.name} answers {status or ''} {text[:200]} to GET /metrics")
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def require_relays(self):
        """Raises `NotYet` unless the node's media is connected to that of all other nodes."""
        metrics = self.metrics()
        connected, connecting = (
            metrics.get(f'confab_cluster_relays{{state="{state}"}}', 0) for state in ("connected", "connecting"))
        require(
            connected >= len(self.cluster.nodes) - 1 and not connecting,
            f"{self.name} has {connected:.0f} connected relays, and {connecting:.0f} that connect")

    def require_ready(self, is_ready=True):
        """Raises `NotYet` unless the node says that it is ready, or that it is not."""
        status, text = http_get(self.machine.address, self.port, "/ready")
        require(status and (status == 200) == is_ready, f"{self.name} answers {status or ''} {text} to GET /ready")

    def await_ready(self, seconds=READY_SECONDS):
        self.program.until(f"Node {self.number} becomes ready", self.require_ready, seconds)

    def confab(self, *arguments):
        """Runs `confab` on the node's machine, as its operator does. Returns what it prints."""
        done = subprocess.run(
            [*self.machine.prefix, self.cluster.executable, *arguments, "--data-dir", self.data], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"`confab {' '.join(arguments)}` on {self.name} says: {done.stderr.strip()}")
        return done.stdout.strip()

    def use(self, executable):
        """Stops the node as an operator does, and starts it with this executable. Returns whether it stopped by itself."""
        stopped = self.program.stop(30)
        self.program.command[0] = executable
        self.program.start()
        return stopped


class Cluster:
    """Use it in a `with` statement, which ends it and deletes its data. `network` says on which machines it runs. With `has_relays`, rooms
    span nodes, metrics are served, many clients can have one address, and pressing Next quickly has no penalty."""

    def __init__(self, executable, nodes=2, port=0, network=None, say=lambda text: None, has_relays=False):
        self.executable, self.say, self.has_relays = executable, say, has_relays
        self.network = network or Loopback()
        self.is_local = isinstance(self.network, Loopback)
        # `programs`: those that are neither nodes nor engines.
        self.nodes, self.programs = [], []
        self.postgres = self.redis = None
        self.folder = tempfile.mkdtemp(prefix="confab-cluster-")
        os.chmod(self.folder, 0o711)
        self._sources = itertools.cycle(self.network.sources())
        try:
            self._start(nodes, port)
        except BaseException:
            self.__exit__()
            raise

    def _start(self, nodes, port):
        self.proxy_machine = self.network.machine("proxy")
        # What a client in Python needs to know of a server.
        self.host, self.port = self.proxy_machine.address, port or (free_port() if self.is_local else PAGE_PORT)
        self.url = f"http://{self.host if self.is_local else PAGE}:{self.port}"
        self.media_port = 0 if self.is_local else 40000
        self.say("Starting PostgreSQL and Redis")
        self.postgres = Postgres(self.folder, self.network.machine("postgres"), free_port() if self.is_local else 5432)
        machines = [self.network.machine(f"redis{number}") for number in range(1, 2 if self.is_local else 4)]
        self.redis = RedisServers(self.folder, machines, free_port() if self.is_local else REDIS_PORT)
        for number in range(1, nodes + 1):
            own_port = self.port + number if port else free_port() if self.is_local else PAGE_PORT
            node = Node(self, number, self.network.machine(f"n{number}"), own_port)
            self.nodes.append(node)
            node.await_ready()
            self.say(f"Node {number} is ready: http://{node.machine.address}:{node.port}")
        self._start_haproxy()

    def await_relays(self, seconds=30):
        """Waits until the media of each node is connected to that of all others."""
        for node in self.nodes:
            node.program.until(f"The relays of {node.name} connect", node.require_relays, seconds)

    def source(self):
        """The address of the next visitor."""
        return next(self._sources)

    def sql(self, statement):
        return self.postgres.sql(statement)

    def __enter__(self):
        return self

    @property
    def _engines(self):
        return [*(self.redis.programs if self.redis else []), *([self.postgres.program] if self.postgres else [])]

    @property
    def _all_programs(self):
        return [*(node.program for node in self.nodes), *self.programs, *self._engines]

    def abandon(self):
        """Kills everything and deletes the data, without waiting for anything."""
        for program in self._all_programs:
            program.signal(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_):
        # The nodes end first, while they can still store what they have.
        for machine in getattr(self.network, "machines", []):
            machine.mend()
        for program in self._all_programs:
            program.signal(signal.SIGCONT)
        nodes = [node.program for node in self.nodes if node.program.runs]
        for program in nodes:
            program.process.send_signal(signal.SIGTERM)
        for program in [*nodes, *self.programs, *self._engines]:
            program.stop()
        self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start_haproxy(self):
        binary = find_command("haproxy")
        if not binary:
            raise Missing("HAProxy is not installed. Debian's package is haproxy.")
        with open(os.path.join(ROOT, "deploy", "haproxy.cfg")) as file:
            sample = file.read()
        # The sample with the addresses of these nodes, without TLS, and without what needs the system's folders and users.
        left_out = re.compile(r"\s*((use-server|server) n\d|(chroot|user|group|stats socket) )")
        lines = [line for line in sample.splitlines() if not left_out.match(line)]
        text = "\n".join(lines).replace("log /dev/log local0", "log stderr format iso local0")
        text = re.sub(r"maxconn \d+", "maxconn 2000", text)  # Fits the usual limit of open files.
        text = re.sub(r"(?m)^(\s*bind ).*$", rf"\g<1>{self.host}:{self.port}", text)
        text += "".join(f"\n    use-server {node.name} if {{ url_param(at) {node.name} }}" for node in self.nodes)
        text += "".join(f"\n    server {node.name} {node.machine.address}:{node.port}" for node in self.nodes) + "\n"
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(text)
        self.haproxy = Program(self.folder, "haproxy", [binary, "-W", "-f", path], self.proxy_machine)
        self.programs.append(self.haproxy)
        self.haproxy.until("HAProxy passes requests to the nodes", self._require_page, 10)

    def _require_page(self):
        status, text = http_get(self.host, self.port, "/health")
        require(status == 200, f"HAProxy answers {status or ''} {text} to GET /health")


def run(executable, arguments):
    """Runs a cluster on loopback until it is interrupted: the command `scripts/cluster`."""
    nodes = int(arguments[0]) if arguments else 2
    port = int(os.environ.get("CONFAB_PORT", "8080"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Cluster(executable, nodes, port, say=lambda text: print(text, file=sys.stderr, flush=True)) as cluster:
            print(f"The logs are in {cluster.folder}. Stop everything with Ctrl-C.", file=sys.stderr)
            print(f"Confab is ready: http://127.0.0.1:{cluster.port}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("Stopped", file=sys.stderr)
