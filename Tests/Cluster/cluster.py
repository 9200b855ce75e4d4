"""Starts a cluster on loopback from Debian's packages: PostgreSQL, Redis, nodes, and HAProxy in front of them.

Each program has its data in one temporary folder, and ends with this process. Between each node and its PostgreSQL and Redis is a
link that can be cut.
"""

import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from link import Link

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Missing(Exception):
    """A program is not installed. The message names its package."""


class Failed(Exception):
    """A program did not start. The message has the end of its log."""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(condition, seconds, pause=0.02):
    """Polls until the condition is true or the time is over. Returns its last result."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return answer


def http_get(port, path):
    """Returns the status of a request, or 0 if there was no answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            head = connection.recv(4096)
        return int(head.split(b" ")[1])
    except (OSError, IndexError, ValueError):
        return 0


class Program:
    """A process in a group of its own, with a log. It ends with this process."""

    def __init__(self, folder, name, command, environment=None, is_postgres=False):
        self.name, self.command, self.environment = name, command, environment
        self.log = os.path.join(folder, f"{name}.log")
        self.is_postgres = is_postgres
        self.process = None
        self.start()

    def start(self):
        prefix = ["setpriv", "--pdeathsig", "KILL"]
        if self.is_postgres and os.getuid() == 0:  # PostgreSQL refuses to run as root.
            prefix += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*prefix, *self.command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment,
                start_new_session=True)

    @property
    def runs(self):
        return self.process.poll() is None

    def signal(self, number):
        """Signals all processes of the program. Those of PostgreSQL have groups of their own."""
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
                processes = [self.process.pid, *map(int, children.read().split())]
        except OSError:
            processes = [self.process.pid]
        for process in processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=15):
        """Asks the program to stop, and kills it after `seconds`. Returns whether it stopped by itself."""
        try:
            self.process.send_signal(signal.SIGINT if self.is_postgres else signal.SIGTERM)
            self.process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            self.kill()
            return False

    def text(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def fail(self, sentence):
        raise Failed(f"{sentence}\n" + "\n".join(self.text().splitlines()[-20:]))


class Node:
    """A Confab server. Its links lead to PostgreSQL and Redis."""

    def __init__(self, cluster, number, port):
        self.cluster, self.number, self.port = cluster, number, port
        self.name = f"n{number}"
        self.data = os.path.join(cluster.folder, f"node{number}")
        os.mkdir(self.data, 0o700)
        if number > 1:  # All nodes have the same project and the same server key.
            for file in ("project.json", "server.key"):
                shutil.copy(os.path.join(cluster.nodes[0].data, file), self.data)
        self.postgres = Link(cluster.postgres_port)
        self.redis = Link(cluster.redis_port)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CONFAB_")}
        self.program = Program(
            cluster.folder, f"node{number}", [cluster.executable, "serve"], {
                **inherited,
                "CONFAB_CLUSTER_NODE": str(number),
                "CONFAB_CLUSTER_REDIS": f"redis://127.0.0.1:{self.redis.port}",
                "CONFAB_STORAGE_URL": f"postgresql://confab@127.0.0.1:{self.postgres.port}/confab",
                "CONFAB_DATA_DIRECTORY": self.data, "CONFAB_PORT": str(port), "CONFAB_METRICS_ENABLED": "false",
                "CONFAB_MEDIA_PORT": "0", "CONFAB_TRUSTED_PROXIES": "127.0.0.1",
                "CONFAB_PUBLIC_URL": f"http://127.0.0.1:{cluster.port}",
                **cluster.settings,
            })

    @property
    def is_ready(self):
        return http_get(self.port, "/ready") == 200

    def await_ready(self, seconds=60):
        if not until(lambda: not self.program.runs or self.is_ready, seconds, 0.05) or not self.program.runs:
            self.program.fail(f"Node {self.number} is not ready.")


class Cluster:
    """Use it in a `with` statement, which ends it and deletes its data."""

    def __init__(self, executable, nodes=2, port=0, settings=None, say=lambda text: None):
        self.executable, self.settings = executable, dict(settings or {})
        self.programs, self.nodes, self.links = [], [], []
        self.port = port or free_port()
        self.folder = tempfile.mkdtemp(prefix="confab-cluster-")
        os.chmod(self.folder, 0o711)
        try:
            say("Starting PostgreSQL and Redis")
            self._start_postgres()
            self._start_redis()
            for number in range(1, nodes + 1):
                node = Node(self, number, self.port + number if port else free_port())
                self.nodes.append(node)
                node.await_ready()
                say(f"Node {number} is ready: http://127.0.0.1:{node.port}")
            self._start_haproxy()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The nodes end first, while they can still store what they have.
        programs = [node.program for node in self.nodes] + self.programs[::-1]
        for node in self.nodes:
            node.postgres.mend()
            node.redis.mend()
            node.program.signal(signal.SIGCONT)
        for program in programs:
            program.signal(signal.SIGCONT)
            program.stop()
        for node in self.nodes:
            node.postgres.close()
            node.redis.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _program(self, *arguments, **options):
        program = Program(self.folder, *arguments, **options)
        self.programs.append(program)
        return program

    # PostgreSQL and Redis

    def _start_postgres(self):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
        if not found:
            raise Missing("PostgreSQL is not installed. Debian's package is postgresql-15.")
        self.postgres_binaries = found[-1]
        self.postgres_port = free_port()
        home = os.path.join(self.folder, "postgres")
        os.mkdir(home, 0o700)
        if os.getuid() == 0:
            shutil.chown(home, "postgres", "postgres")
        data = os.path.join(home, "data")
        initialize = Program(
            self.folder, "initdb", [
                f"{self.postgres_binaries}/initdb", f"--pgdata={data}", "--auth=trust", "--username=confab",
                "--encoding=UTF8", "--locale=C"], is_postgres=True)
        if initialize.process.wait() != 0:
            initialize.fail("PostgreSQL did not create its files.")
        self.postgres = self._program(
            "postgres", [
                f"{self.postgres_binaries}/postgres", "-D", data, "-c", "listen_addresses=127.0.0.1", "-c",
                f"port={self.postgres_port}", "-c", f"unix_socket_directories={home}"], is_postgres=True)
        if not until(self.is_postgres_ready, 30):
            self.postgres.fail("PostgreSQL does not accept connections.")
        subprocess.run(
            [f"{self.postgres_binaries}/createdb", "--host=127.0.0.1", f"--port={self.postgres_port}",
             "--username=confab", "confab"], check=True)

    def is_postgres_ready(self):
        return subprocess.run(
            [f"{self.postgres_binaries}/pg_isready", "--quiet", "--host=127.0.0.1", f"--port={self.postgres_port}"]
        ).returncode == 0

    def sql(self, statement):
        """Returns the rows of a statement as lists of text."""
        done = subprocess.run(
            ["psql", "--host=127.0.0.1", f"--port={self.postgres_port}", "--username=confab", "--dbname=confab",
             "--tuples-only", "--no-align", "--field-separator=\t", f"--command={statement}"],
            check=True, capture_output=True, text=True)
        return [line.split("\t") for line in done.stdout.splitlines() if line]

    def _start_redis(self):
        if not shutil.which("redis-server"):
            raise Missing("Redis is not installed. Debian's package is redis-server.")
        self.redis_port = free_port()
        self.redis = self._program(
            "redis", [
                "redis-server", "--bind", "127.0.0.1", "--port", str(self.redis_port), "--save", "", "--appendonly", "no",
                "--maxmemory-policy", "noeviction", "--dir", self.folder])
        if not until(self.is_redis_ready, 10):
            self.redis.fail("Redis does not accept connections.")

    def is_redis_ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.redis_port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    # HAProxy

    def _start_haproxy(self):
        binary = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not binary:
            raise Missing("HAProxy is not installed. Debian's package is haproxy.")
        with open(os.path.join(ROOT, "deploy", "haproxy.cfg")) as file:
            sample = file.read()
        # The sample with the addresses of these nodes, without TLS, and without the socket of the system's log.
        lines = [line for line in sample.splitlines() if not re.match(r"\s*(use-server|server) n\d", line)]
        text = "\n".join(lines).replace("log /dev/log local0", "log stderr format raw local0")
        text = re.sub(r"maxconn \d+", "maxconn 2000", text)  # Fits the usual limit of open files.
        text = re.sub(r"(?m)^(\s*bind ).*$", rf"\g<1>127.0.0.1:{self.port}", text)
        text += "".join(f"\n    use-server {node.name} if {{ url_param(at) {node.name} }}" for node in self.nodes)
        text += "".join(f"\n    server {node.name} 127.0.0.1:{node.port}" for node in self.nodes) + "\n"
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(text)
        self.haproxy = self._program("haproxy", [binary, "-W", "-f", path])
        if not until(lambda: http_get(self.port, "/health") == 200, 10):
            self.haproxy.fail("HAProxy does not pass requests on.")


def run(executable, arguments):
    """Runs a cluster until it is interrupted: the command `scripts/cluster`."""
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
