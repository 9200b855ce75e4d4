"""A guest who stands in for a host makes a second tab host, to stay in power when the host comes."""

from client import Client
from server import Server

TITLE = "a stand-in host keeps nothing through a second tab"

ROOM = "Consultation"
GUEST, HOST = "127.0.0.2", "127.0.0.3"


def run(report):
    with Server() as server:
        server.create_room(ROOM)
        guest, host = server.room_token(ROOM, "guest"), server.room_token(ROOM, "host")
        stand_in = Client(server, GUEST)
        role = stand_in.join(token=guest)["role"]
        report.sent(f"the holder of a guest's token comes first, and is {role}")
        same, other = Client(server, GUEST, stand_in.identity), Client(server, GUEST)
        same.join(token=guest)
        other.join(ROOM, "Tab")
        tabs = {"a tab with the same token": same, "a tab without a token": other}
        for title, tab in tabs.items():
            answer = stand_in.attempt("room.role", connectionId=tab.id, role="host")
            report.sent(f"room.role host for {title}: {answer}")
        answer = same.attempt("room.role", connectionId=stand_in.id, role="host")
        report.sent(f"room.role host from the first tab for the stand-in: {answer}")
        owner = Client(server, HOST)
        report.sent(f"the holder of a host's token comes: {owner.join(token=host)['role']}")
        for title, tab in {"the stand-in": stand_in, **tabs}.items():
            role = tab.role()
            report.check(role == "guest", f"{title} is a guest then: {role}")
        for title, tab in {"the stand-in": stand_in, **tabs}.items():
            answer = tab.attempt("room.remove", connectionId=owner.id, ban=True)
            report.check(answer == "not_permitted", f"{title} cannot ban the holder of the host's token: {answer}")
        answer = owner.attempt("room.react", reaction="!")
        report.check(answer == "ok", f"the holder of the host's token is still in the room: {answer}")
        owner.leave()
        answer = Client(server, HOST, owner.identity).attempt("room.join", token=host, displayName="")
        report.check(answer == "room.joined", f"and can come back: {answer}")
