"""A client behind a proxy adds a second forwarding header that contradicts the proxy's."""

from client import Client, Refused
from report import Impossible, until
from server import Server

TITLE = "a banned address stays banned, whatever it claims in a second header"

PROXY = "127.0.0.1"
BANNED, OTHER = "203.0.113.7", "198.51.100.9"
# What the client sends, in front of what a proxy that only knows X-Forwarded-For adds, or after it.
FORGERIES = [
    ("Forwarded", f"for={OTHER}"),
    ("Forwarded", f'for="{OTHER}:4711";proto=https'),
    ("Forwarded", f"for={OTHER}, for={PROXY}"),
    ("Forwarded", "for=unknown"),
    ("Forwarded", "for=_hidden"),
    ("Forwarded", "proto=https"),
    ("Forwarded", ""),
    ("Forwarded", 'for="'),
    ("Forwarded", f"for={PROXY}"),
]


def run(report):
    with Server({"trustedProxies": PROXY}) as server:
        server.command("ban", "add", BANNED, "--reason", "attack")
        by_proxy = [("X-Forwarded-For", BANNED)]
        if not until(lambda: welcome(server, by_proxy) != "welcome", 5):
            raise Impossible("the ban does not take effect")
        report.sent(f"{BANNED} is banned, and comes through the trusted proxy {PROXY}")
        report.seen(f"without a second header: {welcome(server, by_proxy)}")
        answer = welcome(server, [("X-Forwarded-For", OTHER)])
        report.check(answer == "welcome", f"another address behind the proxy is welcome ({answer})")
        for forgery in FORGERIES:
            for headers in ([forgery, *by_proxy], [*by_proxy, forgery]):
                judge(report, server, headers)
        judge(report, server, [("X-Forwarded-For", OTHER), *by_proxy])
        judge(report, server, [("X-Real-IP", OTHER), *by_proxy])
        # A proxy that writes Forwarded, and passes on the client's X-Forwarded-For.
        for forged in (OTHER, "unknown", ""):
            judge(report, server, [("X-Forwarded-For", forged), ("Forwarded", f"for={BANNED}")])


def judge(report, server, headers):
    answer = welcome(server, headers)
    text = ", ".join(f"{name}: {value}" for name, value in headers)
    report.check(answer != "welcome", f"no welcome for {text} ({answer})")


def welcome(server, headers):
    try:
        Client(server, PROXY, headers=headers).close()
        return "welcome"
    except Refused as refusal:
        return refusal.code
