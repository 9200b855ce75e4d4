"""PostgreSQL and Redis for a cluster, from Debian's packages."""

import glob
import os
import shutil
import signal
import socket
import subprocess

from programs import Missing, Program, require, until

REDIS_PORT, SENTINEL_PORT = 6379, 26379
# The name under which the Sentinels know the primary.
PRIMARY = "confab"


class Postgres:
    """One server, which trusts everyone on its network."""

    def __init__(self, folder, machine, port):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
        if not found:
            raise Missing("PostgreSQL is not installed. Debian's package is postgresql-15.")
        self.binaries, self.machine, self.port = found[-1], machine, port
        home = os.path.join(folder, "postgres")
        os.mkdir(home, 0o700)
        if os.getuid() == 0:
            shutil.chown(home, "postgres", "postgres")
        data = os.path.join(home, "data")
        initialize = Program(
            folder, "initdb", [
                f"{self.binaries}/initdb", f"--pgdata={data}", "--auth=trust", "--username=confab", "--encoding=UTF8",
                "--locale=C"], machine, is_postgres=True)
        if initialize.process.wait() != 0:
            initialize.fail("PostgreSQL did not create its files.")
        with open(os.path.join(data, "pg_hba.conf"), "a") as rules:
            rules.write("host all all samenet trust\n")
        self.program = Program(
            folder, "postgres", [
                f"{self.binaries}/postgres", "-D", data, "-c", f"listen_addresses={machine.address}", "-c", f"port={port}",
                "-c", f"unix_socket_directories={home}"], machine, is_postgres=True)
        self.program.until("PostgreSQL accepts connections", self.require_ready, 30)
        subprocess.run(
            [f"{self.binaries}/createdb", f"--host={machine.address}", f"--port={port}", "--username=confab", "confab"],
            check=True)

    @property
    def url(self):
        return f"postgresql://confab@{self.machine.address}:{self.port}/confab"

    def require_ready(self):
        done = subprocess.run(
            [f"{self.binaries}/pg_isready", f"--host={self.machine.address}", f"--port={self.port}"], capture_output=True,
            text=True)
        require(done.returncode == 0, f"pg_isready says {done.stdout.strip()}")

    def sql(self, statement):
        """Returns the rows of a statement as lists of text."""
        done = subprocess.run(
            ["psql", f"--host={self.machine.address}", f"--port={self.port}", "--username=confab", "--dbname=confab",
             "--tuples-only", "--no-align", "--field-separator=\t", f"--command={statement}"],
            check=True, capture_output=True, text=True)
        return [line.split("\t") for line in done.stdout.splitlines() if line]


class Redis:
    """One server that keeps nothing on disk, and its Sentinel if there are several."""

    def __init__(self, folder, name, machine, port, primary=None, with_sentinel=False):
        if not shutil.which("redis-server"):
            raise Missing("Redis is not installed. Debian's package is redis-server.")
        self.folder, self.name, self.machine, self.port = os.path.join(folder, name), name, machine, port
        os.mkdir(self.folder)
        self.settings = [
            f"bind {machine.address}", f"port {port}", "protected-mode no", 'save ""', "appendonly no",
            "maxmemory-policy noeviction", f"dir {self.folder}", "repl-diskless-sync-delay 0"]
        self._configure(primary)
        self.sentinel = None
        self.program = Program(folder, name, ["redis-server", os.path.join(self.folder, "redis.conf")], machine)
        self.await_ready()
        if with_sentinel:
            self._start_sentinel(folder, primary or self)

    def _configure(self, primary):
        # Redis and Sentinel write into this file which server is the primary.
        with open(os.path.join(self.folder, "redis.conf"), "w") as file:
            file.write("\n".join(self.settings + ([f"replicaof {primary.machine.address} {primary.port}"] if primary else [])))

    def _start_sentinel(self, folder, primary):
        path = os.path.join(self.folder, "sentinel.conf")
        with open(path, "w") as file:
            file.write("\n".join([
                f"bind {self.machine.address}", f"port {SENTINEL_PORT}", "protected-mode no", f"dir {self.folder}",
                f"sentinel monitor {PRIMARY} {primary.machine.address} {primary.port} 2",
                f"sentinel down-after-milliseconds {PRIMARY} 1000", f"sentinel failover-timeout {PRIMARY} 6000",
                f"sentinel parallel-syncs {PRIMARY} 2"]))
        self.sentinel = Program(folder, f"{self.name}-sentinel", ["redis-server", path, "--sentinel"], self.machine)

    @property
    def programs(self):
        return [program for program in (self.sentinel, self.program) if program]

    def ask(self, *words, port=None):
        """Returns the answer of a command as text, or None if there is none."""
        command = "".join([f"*{len(words)}\r\n", *(f"${len(word.encode())}\r\n{word}\r\n" for word in words)])
        try:
            with socket.create_connection((self.machine.address, port or self.port), timeout=1) as connection:
                connection.sendall(command.encode())
                return connection.recv(65536).decode(errors="replace")
        except OSError:
            return None

    def require_ready(self):
        answer = self.ask("PING")
        require(answer and answer.startswith("+PONG"), f"{self.name} answers PING with {answer}")

    def await_ready(self):
        self.program.until("Redis accepts connections", self.require_ready, 10)

    @property
    def is_primary(self):
        return "role:master" in (self.ask("INFO", "replication") or "")

    def require_replica(self):
        self.require_ready()
        require(not self.is_primary, f"{self.name} runs, but is a primary")

    def require_known(self, count):
        """Raises `NotYet` unless the Sentinel has found the replicas and the other Sentinels, so that it can promote one."""
        answer = self.ask("SENTINEL", "MASTER", PRIMARY, port=SENTINEL_PORT) or ""
        fields = answer.split("\r\n")[2::2]
        known = dict(zip(fields[::2], fields[1::2]))
        replicas, sentinels = known.get("num-slaves", "no"), known.get("num-other-sentinels", "no")
        require(
            replicas == sentinels == str(count),
            f"the Sentinel of {self.name} knows {replicas} replicas and {sentinels} other Sentinels, of {count} each")


class RedisServers:
    """One Redis on loopback, or a primary with two replicas and a Sentinel beside each."""

    def __init__(self, folder, machines, port):
        self.servers = []
        for number, machine in enumerate(machines, 1):
            primary = self.servers[0] if self.servers else None
            self.servers.append(Redis(folder, f"redis{number}", machine, port, primary, len(machines) > 1))

    def await_sentinels(self):
        """Waits until each Sentinel knows the others and the replicas, which takes 10 s, because they ask so rarely."""
        others = len(self.servers) - 1
        for server in self.servers:
            server.sentinel.until("The Sentinels find each other", lambda: server.require_known(others), 30)

    @property
    def settings(self):
        """The configuration of a node."""
        if len(self.servers) == 1:
            return {"CONFAB_CLUSTER_REDIS": f"redis://{self.servers[0].machine.address}:{self.servers[0].port}"}
        urls = [f"redis://{server.machine.address}:{SENTINEL_PORT}" for server in self.servers]
        return {"CONFAB_CLUSTER_REDIS": ",".join(urls), "CONFAB_CLUSTER_SENTINEL_PRIMARY": PRIMARY}

    @property
    def machines(self):
        return [server.machine for server in self.servers]

    @property
    def programs(self):
        return [program for server in self.servers for program in server.programs]

    @property
    def primaries(self):
        return [server for server in self.servers if server.program.runs and server.is_primary]

    @property
    def primary(self):
        return next(iter(self.primaries), None)

    def kill(self):
        """Ends all of them and their Sentinels, as if each had lost its power: they forget everything."""
        for program in self.programs:
            program.signal(signal.SIGKILL)
        for program in self.programs:
            program.process.wait()

    def start(self):
        """Starts all of them again, and waits until there is a primary."""
        for program in self.programs:
            program.start()
        until(lambda: require(self.primary, "no Redis is the primary"), 20)

    def rooms(self, prefix):
        """The names of the rooms that begin with this and have a place; none while there is no primary."""
        key, primary = "confab:place:room:", self.primary
        answer = (primary.ask("KEYS", f"{key}{prefix}*") if primary else None) or ""
        return sorted(line[len(key):] for line in answer.split("\r\n") if line.startswith(key))

    def owner_of_room(self, room):
        """The number of the node that has the room's place, or None."""
        primary = self.primary
        answer = primary.ask("GET", f"confab:place:room:{room}") if primary else None
        fields = (answer or "").split("\r\n")
        return int(fields[1].split("-")[0]) if len(fields) > 2 and "-" in fields[1] else None
