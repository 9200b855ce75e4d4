"""One address takes all places of a room, or of its lobby."""

from client import Client, Refused
from server import Server

TITLE = "few addresses cannot take the places of the creator and of people who are invited"

CREATOR, INVITED, LINK = "127.0.0.2", "127.0.0.4", "127.0.0.5"
SQUATTERS = ["127.0.1.1", "127.0.1.2"]
CAPACITY = 25
LOBBY = 100


def run(report):
    with Server() as server:
        squat_room(report, server)
        squat_lobby(report, server)


def squat_room(report, server):
    creator = create(server, "Clinic", capacity=CAPACITY)
    creator.leave()
    squatters = squat(report, server, SQUATTERS[0], "Clinic", CAPACITY + 5)
    answer = attempt(server, LINK, "Clinic")
    report.check(answer == "room.joined as guest", f"a person with the link finds a place: {answer}")
    squatters += squat(report, server, SQUATTERS[1], "Clinic", CAPACITY + 5)
    judge_owners(report, server, "Clinic", creator.identity)
    end(squatters)


def squat_lobby(report, server):
    creator = create(server, "Surgery", lobby=True)
    creator.leave()
    squatters = []
    for address in SQUATTERS:
        squatters += squat(report, server, address, "Surgery", LOBBY)
    answer = attempt(server, LINK, "Surgery")
    report.check(answer == "room.waiting", f"a person with the link can wait in the lobby: {answer}")
    judge_owners(report, server, "Surgery", creator.identity)
    end(squatters)


def create(server, name, **options):
    creator = Client(server, CREATOR)
    creator.join(name, "Ada", options={"persistent": True, **options})
    return creator


def squat(report, server, address, name, tries):
    """Joins repeatedly as another person, until the server refuses."""
    clients, answer = [], None
    for _ in range(tries):
        clients.append(Client(server, address))
        answer = clients[-1].attempt("room.join", name=name, displayName="Squatter")
        if not answer.startswith("room.") or answer == "room_full":
            break
    report.sent(f"people from {address} join “{name}”")
    report.seen(f"{len(clients)} tries, the last one is answered with {answer}")
    return clients


def attempt(server, address, name, **members):
    """Returns how a newcomer is answered. The newcomer stays."""
    client = Client(server, address, members.pop("identity", None))
    try:
        answer = client.join(name, "Ben", **members)
    except Refused as refusal:
        return refusal.code
    return f"room.joined as {answer['role']}" if answer["type"] == "room.joined" else answer["type"]


def judge_owners(report, server, name, identity):
    token = server.room_token(name, "host")
    answer = attempt(server, INVITED, name, token=token)
    report.check(answer == "room.joined as host", f"the holder of a host's token comes in: {answer}")
    answer = attempt(server, CREATOR, name, identity=identity)
    report.check(answer == "room.joined as host", f"the creator comes back: {answer}")


def end(clients):
    for client in clients:
        client.close()
