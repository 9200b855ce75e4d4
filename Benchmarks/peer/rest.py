"""The load of the parts `sessions` and `signals`: requests as OpenTok's server SDKs send them, on one connection.

    rest.py sessions PORT SERVER COUNT          creates sessions
    rest.py signals PORT SERVER COUNT SESSION   sends signals to the session

SERVER is the process whose CPU time counts. Prints the requests per second of its CPU time. The credentials are in
CONFAB_API_KEY and CONFAB_API_SECRET.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import sys
import time

key = os.environ["CONFAB_API_KEY"]
# The first of these requests are not measured.
WARM_UP = 0.1


def encoded(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=")


def token():
    """A JWT as the SDKs send it. Each request has a new one there, and here."""
    now = int(time.time())
    claims = {"ist": "project", "iss": key, "iat": now, "exp": now + 180, "jti": str(time.perf_counter())}
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signed = b".".join(parts)
    mac = hmac.new(os.environ["CONFAB_API_SECRET"].encode(), signed, hashlib.sha256)
    return (signed + b"." + encoded(mac.digest())).decode()


def used(process):
    """The CPU time of all threads of a process, in seconds."""
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(part, port, process, count, session=""):
    count = int(count)
    if part == "sessions":
        path, body, kind = "/session/create", "p2p.preference=enabled&archiveMode=manual&e2ee=false", "x-www-form-urlencoded"
        expected, what = 200, "sessions created over REST"
    else:
        path, kind = f"/v2/project/{key}/session/{session}/signal", "json"
        body = json.dumps({"type": "bench", "data": "x" * 200})
        expected, what = 204, "signals over REST into a session of two"
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    before = used(process)
    for number in range(int(count * (1 + WARM_UP))):
        if number == int(count * WARM_UP):
            before, started = used(process), time.monotonic()
        connection.request("POST", path, body, {
            "X-OPENTOK-AUTH": token(), "Accept": "application/json", "Content-Type": f"application/{kind}"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != expected:
            sys.exit(f"The response to request {number} is {response.status}: {answer.decode()}")
    spent = used(process) - before
    print(f"| {what}, per second of CPU time | {count / spent:.0f} | |")
    print(f"| the same, {count} one after the other | {time.monotonic() - started:.1f} s | |")


main(*sys.argv[1:])
