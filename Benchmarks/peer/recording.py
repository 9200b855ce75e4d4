"""Measures one server with a recording and without one, in turns, for Benchmarks/recording, which describes it.

    recording.py FOLDER EXECUTABLE PAIRS SECONDS SUBSCRIBERS
"""

import base64
import glob
import hashlib
import hmac
import json
import os
import statistics
import sys
import time
import urllib.error
import urllib.request

import servers

# Seconds after a recording has begun or ended, before its effect is measured.
SETTLING = 1
# Seconds from the request until the recording begins: members are notified first.
BEGINNING = 30


def encoded(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=")


class Archives:
    """The REST requests for archives."""

    def __init__(self, server):
        self.server, self.key = server, os.environ["CONFAB_API_KEY"]

    def ask(self, method, path="", body=None):
        now = int(time.time())
        claims = {"ist": "project", "iss": self.key, "iat": now, "exp": now + 180, "jti": os.urandom(8).hex()}
        signed = b".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
        mac = hmac.new(os.environ["CONFAB_API_SECRET"].encode(), signed, hashlib.sha256)
        request = urllib.request.Request(
            f"{self.server.url}/v2/project/{self.key}/archive{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"X-OPENTOK-AUTH": (signed + b"." + encoded(mac.digest())).decode(), "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise servers.Failure(f"{method} {path or '/archive'} failed: {error.read().decode(errors='replace')}") from error

    def start(self, session):
        archive = self.ask("POST", "", {"sessionId": session, "outputMode": "individual"})["id"]
        limit = time.monotonic() + BEGINNING
        while not any(os.path.getsize(file) for file in glob.glob(f"{self.server.data}/recordings/{archive}/*.webm")):
            if time.monotonic() > limit:
                raise servers.Failure(f"Nothing was recorded within {BEGINNING} s.")
            time.sleep(0.1)
        return archive

    def stop(self, archive):
        self.ask("POST", f"/{archive}/stop")


def measure(server, seconds):
    """Returns the CPU time of the server in ms per second, by what its threads do."""
    time.sleep(SETTLING)
    before, then = server.threads(), time.monotonic()
    time.sleep(seconds)
    after, passed = server.threads(), time.monotonic() - then
    server.require_load()
    parts = {
        "media": servers.used_by_media(before, after) / passed,
        "recorder": servers.used(before, after, "confab-recorder") / passed,
    }
    total = servers.used(before, after) / passed
    return parts | {"other": total - sum(parts.values()), "all": total}


def main(folder, executable, pairs, seconds, subscribers):
    pairs, seconds = int(pairs), float(seconds)
    server = servers.Server(executable, f"{folder}/server")
    try:
        # Each pair may take as long as a recording may take to begin.
        server.send_media(executable, subscribers, int(pairs * (2 * seconds + BEGINNING + 10) + 60), "--record")
        archives = Archives(server)
        first = archives.ask("GET")["items"][0]
        archives.stop(first["id"])
        results = {False: [], True: []}
        for number in range(pairs):
            for records in (False, True) if number % 2 else (True, False):
                archive = archives.start(first["sessionId"]) if records else None
                results[records].append(measure(server, seconds))
                if archive:
                    archives.stop(archive)
    finally:
        server.stop()
    print(f"\nMedians of {pairs} pairs of slices of {seconds:g} s, in ms of CPU time per second. The difference is the mean of the "
          "pairs ± its standard error.\n")
    print("| threads | off | on | difference |\n| --- | --- | --- | --- |")
    for name, title in (("media", "media loops"), ("recorder", "recorder"), ("other", "others"), ("all", "all")):
        off, on = ([result[name] for result in results[records]] for records in (False, True))
        more = [with_it - without for without, with_it in zip(off, on)]
        error = statistics.stdev(more) / pairs ** 0.5
        medians = f"{statistics.median(off):.2f} | {statistics.median(on):.2f}"
        print(f"| {title} | {medians} | {statistics.mean(more):.2f} ± {error:.2f} |")


servers.run(lambda: main(*sys.argv[1:]))
