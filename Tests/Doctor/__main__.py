"""Gives a server one fault after the other, and checks that `confab doctor` finds each of them (scripts/doctor-test).

The server is in a network namespace. The namespace of this process is the machine from which people come.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(tests, "Attacks"), os.path.join(tests, "Cluster")]

from clock_shift import Clock, ShiftLibrary  # noqa: E402
from programs import Failed, require, until  # noqa: E402

OUTSIDE, INSIDE = "10.203.0.1", "10.203.0.2"
PORT, MEDIA, TURN, PROXY = 8080, 40000, 3478, 8081
SERVER_ROOM = ("nsenter", "--net=/run/netns/server")
START_SECONDS = 30
DAY = 86400

executable = sys.argv[1] if len(sys.argv) > 1 else ""


def run(*command, text=None):
    """Runs a command. Raises Failed with what it wrote if it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def make_network():
    """Makes the server's namespace, and a cable to it."""
    os.makedirs("/run/netns", exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    run("ip", "link", "set", "lo", "up")
    run("ip", "netns", "add", "server")
    run("ip", "-n", "server", "link", "set", "lo", "up")
    run("ip", "link", "add", "to-server", "type", "veth", "peer", "name", "cable", "netns", "server")
    run("ip", "address", "add", f"{OUTSIDE}/24", "dev", "to-server")
    run("ip", "link", "set", "to-server", "up")
    run("ip", "-n", "server", "address", "add", f"{INSIDE}/24", "dev", "cable")
    run("ip", "-n", "server", "link", "set", "cable", "up")


def wait_for(what, port, is_udp=False):
    """Waits until a program in the server's namespace has opened the port."""
    kind = "-lun" if is_udp else "-ltn"
    until(lambda: require(f":{port} " in run(*SERVER_ROOM, "ss", kind), f"{what} has not opened port {port}"), START_SECONDS)


class Place:
    """The processes and files of one row, which end with it."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.folder = tempfile.mkdtemp(prefix="confab-doctor-")
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = os.path.join(self.folder, "data")
        self.settings = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _environment(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CONFAB_")}
        return {**inherited, **self.settings}

    def start(self, *command, environment=None):
        """Starts a program in the server's namespace."""
        log = open(os.path.join(self.folder, "log"), "ab")
        process = subprocess.Popen(
            [*SERVER_ROOM, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**self._environment(), **(environment or {})})

        def stop():
            process.kill()
            process.wait(timeout=10)
            log.close()

        self.stack.callback(stop)
        return process

    def server(self, limit=None, environment=None, **settings):
        """Starts a server. The names of settings are those of its variables."""
        self.settings = {
            "CONFAB_HOST": "0.0.0.0", "CONFAB_PORT": str(PORT), "CONFAB_MEDIA_PORT": str(MEDIA), "CONFAB_MEDIA_LOOPS": "1",
            **{f"CONFAB_{name}": str(value) for name, value in settings.items()}}
        script = (f"ulimit -n {limit} && " if limit else "") + 'exec "$@"'
        self.start("bash", "-c", script, "bash", executable, "serve", "--data-dir", self.data, environment=environment)
        try:
            wait_for("the server", PORT)
        except Failed as failure:
            with open(os.path.join(self.folder, "log"), errors="replace") as log:
                raise Failed(f"{failure}: {log.read()[-2000:]}") from failure

    def firewall(self, *rules):
        """Drops what the rules match on its way to the server."""
        run(*SERVER_ROOM, "nft", "-f", "-", text="\n".join(
            ["table inet doctor {", "chain incoming { type filter hook input priority 0;", *rules, "}", "}"]) + "\n")
        self.stack.callback(run, *SERVER_ROOM, "nft", "delete", "table", "inet", "doctor")

    def outside(self, url=f"http://{INSIDE}:{PORT}"):
        """Runs the doctor on the other machine."""
        return self._doctor([], ["--url", url])

    def inside(self):
        """Runs the doctor beside the server."""
        return self._doctor(SERVER_ROOM, ["--data-dir", self.data])

    def _doctor(self, prefix, arguments):
        done = subprocess.run(
            [*prefix, executable, "doctor", "--json", *arguments], capture_output=True, text=True, timeout=120,
            env=self._environment())
        try:
            report = json.loads(done.stdout)
        except ValueError as error:
            raise Failed(f"no report: {done.stdout} {done.stderr}") from error
        if done.returncode != (1 if report["failed"] else 0):
            raise Failed(f"the exit status is {done.returncode} with {report['failed']} failed checks")
        return report["findings"]


def expect(findings, check, word, fix, outcome="failed"):
    """Requires a finding with these words, and shows it."""
    for finding in findings:
        if finding["check"] == check and finding["outcome"] == outcome and word in finding["seen"]:
            if fix not in finding.get("fix", ""):
                break
            print(f"    {finding['seen']}\n    Fix: {finding.get('fix', 'none')}")
            return
    raise Failed(f"no {check} {outcome} with {word!r} and {fix!r} in {json.dumps(findings, indent=1)}")


def healthy(place):
    """A server without faults passes from both sides."""
    place.server()
    for findings in (place.outside(), place.inside()):
        failed = [finding for finding in findings if finding["outcome"] == "failed"]
        if failed:
            raise Failed(json.dumps(failed, indent=1))
        for check in ("http", "websocket", "media_udp", "media_tcp") if findings[0]["check"] == "dns" else ("server", "media_udp"):
            if not any(finding["check"] == check and finding["outcome"] == "passed" for finding in findings):
                raise Failed(f"{check} did not pass: {json.dumps(findings, indent=1)}")


def blocked_udp(place):
    """A firewall drops UDP to the media port."""
    place.firewall(f"udp dport {MEDIA} drop")
    place.server()
    expect(place.outside(), "media_udp", "UDP is blocked", f"Open UDP port {MEDIA}")


def blocked_udp_and_tcp(place):
    """A firewall drops all packets to the media port."""
    place.firewall(f"udp dport {MEDIA} drop", f"tcp dport {MEDIA} drop")
    place.server()
    findings = place.outside()
    expect(findings, "media_udp", "neither over UDP nor over TCP", f"UDP port {MEDIA}")
    expect(findings, "media_tcp", "does not answer over TCP", f"TCP port {MEDIA}")


def blocked_page(place):
    """A firewall drops all packets to the page's port."""
    place.firewall(f"tcp dport {PORT} drop")
    place.server()
    expect(place.outside(), "tcp", "firewall", f"Open TCP port {PORT}")


def wrong_address(place):
    """media.address is that of another machine."""
    place.server(MEDIA_ADDRESS="10.203.0.9")
    expect(place.outside(), "media_address", "10.203.0.9", f"media.address to {INSIDE}")


def start_turn(place, secret):
    settings = [
        "-n", "--use-auth-secret", f"--static-auth-secret={secret}", "--realm=example.org", f"--listening-ip={INSIDE}",
        f"--listening-port={TURN}", "--no-tls", "--no-dtls", "--no-cli", f"--pidfile={place.folder}/turn.pid",
        f"--log-file={place.folder}/turn.log"]
    place.start("turnserver", *settings)
    wait_for("coturn", TURN, is_udp=True)


def turn_wrong_credentials(place):
    """coturn has another secret than Confab."""
    start_turn(place, "another secret")
    for transport in ("udp", "tcp"):
        with Place() as again:
            again.server(
                ICE_TURN_SERVERS=f"turn:{INSIDE}:{TURN}?transport={transport}", ICE_TURN_SECRET="0123456789abcdef0123456789abcdef")
            expect(again.outside(), "turn", "rejects the credentials", "ice.turnSecret")


def turn_right_credentials(place):
    """coturn has the same secret, and relays at a private address."""
    start_turn(place, "0123456789abcdef0123456789abcdef")
    place.server(ICE_TURN_SERVERS=f"turn:{INSIDE}:{TURN}?transport=udp", ICE_TURN_SECRET="0123456789abcdef0123456789abcdef")
    expect(place.outside(), "turn", "accepts the credentials", "external-ip", outcome="warning")


def expired_certificate(place):
    """The certificate was issued 400 days ago for 90 days."""
    certificate, key = (os.path.join(place.folder, name) for name in ("certificate.pem", "key.pem"))
    with ShiftLibrary() as library:
        clock = Clock(library)
        clock.set(-400 * DAY)
        done = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90", "-subj", "/CN=chat", "-addext",
             f"subjectAltName=IP:{INSIDE}", "-keyout", key, "-out", certificate],
            capture_output=True, text=True, env={**os.environ, **clock.environment})
    if done.returncode:
        raise Failed(done.stderr)
    place.server(TLS_CERTIFICATE=certificate, TLS_PRIVATE_KEY=key)
    expect(place.outside(f"https://{INSIDE}:{PORT}"), "tls", "expired", "Renew")
    expect(place.inside(), "certificate_files", "expired", "Renew")


def proxy_drops_upgrade(place):
    """nginx forwards requests without Upgrade, as it does by default."""
    place.server()
    configuration = os.path.join(place.folder, "nginx.conf")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(f"""
daemon off; pid {place.folder}/nginx.pid; error_log stderr; user root;
events {{}}
http {{
  access_log off; client_body_temp_path {place.folder}/a; proxy_temp_path {place.folder}/b; fastcgi_temp_path {place.folder}/c;
  uwsgi_temp_path {place.folder}/d; scgi_temp_path {place.folder}/e;
  server {{ listen {PROXY}; location / {{ proxy_pass http://127.0.0.1:{PORT}; }} }}
}}
""")
    place.start("nginx", "-c", configuration)
    wait_for("nginx", PROXY)
    expect(place.outside(f"http://{INSIDE}:{PROXY}"), "websocket", "without Upgrade", "Upgrade and Connection")


def wrong_clock(place):
    """The server's clock is an hour ahead."""
    with ShiftLibrary() as library:
        clock = Clock(library)
        clock.set(3600)
        place.server(environment=clock.environment)
        expect(place.outside(), "clock", "behind the server's", "Synchronize")


def full_disk(place):
    """The disk of the data directory has 8 MiB."""
    os.mkdir(place.data)
    run("mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", place.data)
    place.stack.callback(run, "umount", place.data)
    place.server()
    expect(place.inside(), "disk", "storage.minFreeSpace", "Free space")
    expect(place.outside(), "ready", "disk", "Free space")


def few_descriptors(place):
    """The server may open 256 descriptors."""
    place.server(limit=256)
    expect(place.inside(), "descriptors", "256 descriptors", "LimitNOFILE")


ROWS = [
    healthy, blocked_udp, blocked_udp_and_tcp, blocked_page, wrong_address, turn_wrong_credentials, turn_right_credentials,
    expired_certificate, proxy_drops_upgrade, wrong_clock, full_disk, few_descriptors]


def main():
    names = sys.argv[2:]
    if names == ["--list"]:
        print("\n".join(f"{row.__name__:24}{row.__doc__}" for row in ROWS))
        return 0
    unknown = set(names) - {row.__name__ for row in ROWS}
    if unknown:
        print(f"There is no row {', '.join(sorted(unknown))}. --list prints their names.")
        return 1
    make_network()
    passed = failed = 0
    for row in ROWS:
        if names and row.__name__ not in names:
            continue
        print(f"{row.__name__}: {row.__doc__}", flush=True)
        try:
            with Place() as place:
                row(place)
            passed += 1
        except Exception as failure:  # A row that breaks must not keep the others from running.
            failed += 1
            print(f"  FAILED: {failure}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
