"""Starts a server on loopback with a data directory of its own, and ends it by its process id."""

import atexit
import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from urllib.parse import quote

from report import Impossible, until
from sockets import http

KEY = "45000001"
SECRET = "0123456789abcdef0123456789abcdef0123456789abcdef"
READY = re.compile(r"^Confab is ready: \S+?:(\d+)(?:/\S*)?(?: |$)", re.MULTILINE)

# Set by __main__.
executable = None

# Servers that were not ended yet, because the attack that uses them was interrupted.
_running = set()
atexit.register(lambda: [server.__exit__() for server in list(_running)])


def variable(setting):
    """Returns the environment variable of a setting: rooms.emptyGrace is CONFAB_ROOMS_EMPTY_GRACE."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", setting).replace(".", "_")
    return "CONFAB_" + words.upper()


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def web_token(claims):
    """Returns a JSON Web Token, signed with HS256 and the API secret (RFC 7515)."""
    parts = [base64url(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signed = ".".join(parts)
    return signed + "." + base64url(hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest())


class Server:
    """A running server. Use it in a `with` statement, which ends it and deletes its data."""

    def __init__(self, settings=None, open_files=None, disk=None, environment=None):
        self.settings = dict(settings or {})
        self.open_files, self.disk, self.environment = open_files, disk, dict(environment or {})
        self.folder = tempfile.mkdtemp(prefix="confab-attack-")
        self.mounted = os.path.join(self.folder, "disk")
        self.data = os.path.join(self.mounted, "data")
        self.log = os.path.join(self.folder, "log")
        self.port, self.process = 0, None
        # How many seconds the server's time of day is ahead of ours, after its machine slept.
        self.ahead = 0
        os.mkdir(self.mounted)
        _running.add(self)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        _running.discard(self)

    # The process

    def _environment(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CONFAB_")}
        settings = {"apiKey": KEY, "apiSecret": SECRET, "metrics.enabled": "false", **self.settings}
        return {**inherited, **self.environment, **{variable(name): str(value) for name, value in settings.items()}}

    def _command(self):
        steps = []
        if self.disk:
            # The mount is visible to this process only, and ends with it.
            steps.append(f'mount -t tmpfs -o size={self.disk} confab-attack "$1"')
        if self.open_files:
            steps.append(f"ulimit -n {self.open_files}")
        script = " && ".join([*steps, 'shift && exec "$@"'])
        # The server ends with this process, however that ends.
        prefix = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        prefix += ["unshare", "--mount", "--propagation", "private"] if self.disk else []
        return [*prefix, "bash", "-c", script, "bash", self.mounted, executable,
                "serve", "--data-dir", self.data, "--port", str(self.port), "--media-port", "0"]

    def start(self):
        """Starts the server, again on the same port if it ran before, and waits until it is ready."""
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment())
        ready = until(self._ready, 30)
        if not ready:
            raise Impossible(f"the server did not start: {self.read_log()[-2000:]}")
        self.port = int(ready.group(1))

    def _ready(self):
        if self.process.poll() is not None:
            raise Impossible(f"the server stopped at its start: {self.read_log()[-2000:]}")
        return READY.search(self.read_log())

    def read_log(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def kill(self):
        """Ends the server at once, as a loss of power would."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait(timeout=10)

    def restart(self):
        self.kill()
        self.start()

    def descriptors(self):
        """Returns the number of open descriptors, or None if the system does not tell."""
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return None

    def processor_time(self):
        """Returns the seconds that the server has computed."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            # After the name of the command, which may have spaces.
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def command(self, *arguments):
        """Runs a command of the operator on the data directory."""
        result = subprocess.run(
            [executable, *arguments, "--data-dir", self.data], env=self._environment() | {"LD_PRELOAD": ""},
            capture_output=True, text=True, timeout=20)
        if result.returncode != 0:
            raise Impossible(f"confab {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    # HTTP

    def ready_status(self, source="127.0.0.1", seconds=2.0):
        """Returns the status of /ready and how long it took; the status is None without an answer."""
        start = time.monotonic()
        try:
            status = http(self.port, "GET", "/ready", source=source, seconds=seconds)[0]
        except (OSError, EOFError):
            status = None
        return status, time.monotonic() - start

    def rest(self, method, path, body=None, seconds=5.0):
        """Sends a request of an application. Returns the status and the decoded answer."""
        token = web_token({"iss": KEY, "ist": "project", "exp": int(time.time() + self.ahead) + 120})
        encoded = b"" if body is None else json.dumps(body).encode()
        status, _, answer = http(
            self.port, method, path, [("X-OPENTOK-AUTH", token)], encoded, "127.0.0.9", seconds)
        return status, json.loads(answer) if answer else None

    def room(self, name):
        """Returns the status and the room as an application sees it."""
        return self.rest("GET", "/v1/rooms/" + quote(name, safe=""))

    def create_room(self, name, **options):
        status, answer = self.rest("POST", "/v1/rooms", {"name": name, "options": options})
        if status != 201:
            raise Impossible(f"POST /v1/rooms: {status} {answer}")
        return answer

    def room_token(self, name, role):
        status, answer = self.rest("POST", f"/v1/rooms/{quote(name, safe='')}/tokens", {"role": role})
        if status != 201:
            raise Impossible(f"POST tokens: {status} {answer}")
        return answer["token"]

    # Files of rooms

    def upload(self, member, name, content, seconds=10.0):
        """Sends a file to the chat of the member's room. Returns its id; raises Refused if the promise is refused."""
        promise = member.request("room.file", name=name, size=len(content))
        return promise["fileId"], self.put(promise, content, member.source, seconds)

    def put(self, promise, content, source, seconds=10.0):
        """Uploads what was promised. Returns the status, or None if there was none."""
        try:
            return http(self.port, "PUT", promise["path"], [("Authorization", "Bearer " + promise["secret"])],
                        content, source, seconds)[0]
        except (OSError, EOFError):
            return None

    def download(self, member, file, seconds=10.0):
        files = member.room["files"]
        try:
            status, _, content = http(
                self.port, "GET", f"{files['path']}/{file}", [("Authorization", "Bearer " + files["key"])],
                source=member.source, seconds=seconds)
        except (OSError, EOFError):
            return None, b""
        return status, content
