"""A guest who stands in for a host in an application's persistent room changes what keeps it open."""

from client import Client, Refused
from report import until
from server import Server

TITLE = "a guest neither ends an application's persistent room nor locks its host out"

GUESTS, HOST = ["127.0.0.2", "127.0.0.3"], "127.0.0.4"
# rooms.emptyGrace, shortened, and the time in which an ended room is gone.
EMPTY_GRACE, GONE_WITHIN = 1, 3
# What a guest might set before everyone leaves, in a room each. A locked room that nobody could open ends.
ENDS = {"Ward 2": {"persistent": False}, "Ward 3": {"locked": True}}
# What a guest might set to keep the host out.
OPTIONS = [{"capacity": 1}, {"locked": True}, {"password": "mine"}, {"lobby": True}]


def run(report):
    with Server({"rooms.emptyGrace": f"{EMPTY_GRACE}s"}) as server:
        lock_out(report, server)
        end(report, server)


def arrive(report, server, name):
    """Two guests come into a new room, the first of them with an application's token."""
    server.create_room(name)
    token = server.room_token(name, "guest")
    first, second = (Client(server, address) for address in GUESTS)
    report.sent(f"a guest's token opens “{name}”: the guest is {first.join(token=token)['role']}")
    second.join(name, "Second")
    return first, second


def lock_out(report, server):
    first, _ = arrive(report, server, "Ward 1")
    for options in OPTIONS:
        report.sent(f"room.set {options}: {first.attempt('room.set', options=options)}")
    owner = Client(server, HOST)
    try:
        role = owner.join(token=server.room_token("Ward 1", "host"))["role"]
    except Refused as refusal:
        role = refusal.code
    report.check(role == "host", f"the holder of a host's token comes in as host: {role}")


def end(report, server):
    for name, options in ENDS.items():
        first, second = arrive(report, server, name)
        report.sent(f"room.set {options}: {first.attempt('room.set', options=options)}")
        report.sent(f"both leave: {first.leave()}, {second.leave()}")
    until(lambda: all(server.room(name)[0] != 200 for name in ENDS), GONE_WITHIN, pause=0.2)
    for name in ENDS:
        status, room = server.room(name)
        report.check(status == 200, f"“{name}” is there after the empty grace: {status}")
        report.check(status == 200 and room["options"]["persistent"], "and is persistent")
        report.check(status == 200 and not room["options"]["locked"], "and is open")
