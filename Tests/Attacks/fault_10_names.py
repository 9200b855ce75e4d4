"""The name of a room with a password, after a restart or when the room was empty, goes to a stranger."""

from client import Client, Refused
from report import until
from server import Server

TITLE = "members of a room with a password do not land in a stranger's room of its name"

CREATOR, MEMBER, STRANGER = "127.0.0.2", "127.0.0.3", "127.0.0.4"
PASSWORD = "open sesame"
# rooms.emptyGrace, shortened, and how long the stranger tries.
EMPTY_GRACE, TRIES = 1, 3


def run(report):
    with Server({"rooms.emptyGrace": f"{EMPTY_GRACE}s"}) as server:
        after_restart(report, server)
        after_absence(report, server)


def meet(report, server, name):
    """A creator and a member meet in a room with a password."""
    creator, member = Client(server, CREATOR), Client(server, MEMBER)
    creator.join(name, "Ada", options={"password": PASSWORD})
    member.join(name, "Ben", password=PASSWORD)
    report.sent(f"two people meet in “{name}”, which has a password; its id is {member.room.get('roomId')}")
    return creator, member


def after_restart(report, server):
    _, member = meet(report, server, "Family")
    server.restart()
    stranger = Client(server, STRANGER)
    role = stranger.join("Family", "Stranger")["role"]
    report.sent(f"the server restarts, and a stranger opens “Family” without a password: {role}")
    room = {"roomId": member.room["roomId"]} if "roomId" in member.room else {}
    judge(report, server, member, stranger, "with the room's id and the password", password=PASSWORD, **room)
    judge(report, server, member, stranger, "with the room's id", **room)
    judge(report, server, member, stranger, "with the password, from a bookmark", password=PASSWORD)


def judge(report, server, member, stranger, title, **members):
    back = Client(server, MEMBER, member.identity)
    answer = back.attempt("room.join", name=stranger.room["name"], displayName="Ben", **members)
    report.check(answer not in ("room.joined", "room.waiting"), f"a member who joins {title} does not land there: {answer}")
    back.close()


def after_absence(report, server):
    creator, member = meet(report, server, "Choir")
    for person in (creator, member):
        person.leave()
    stranger = Client(server, STRANGER)
    answer = until(lambda: enter(stranger, "Choir"), TRIES, pause=0.2)
    report.sent(f"both leave, and for {TRIES} s a stranger tries the name without a password")
    report.seen(f"the stranger is {answer or 'refused all the time'}")
    back = Client(server, MEMBER, member.identity)
    try:
        people = [person["displayName"] for person in back.join("Choir", "Ben", password=PASSWORD)["people"]]
    except Refused as refusal:
        people = [refusal.code]
    report.check("Stranger" not in people, f"a member who comes back with the password does not meet the stranger: {people}")


def enter(stranger, name):
    try:
        return stranger.join(name, "Stranger")["role"]
    except Refused:
        return None
