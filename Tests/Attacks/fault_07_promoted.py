"""A guest who became host while the creator was away keeps the room."""

from client import Client, Refused
from server import Server

TITLE = "a creator who comes back is host, and nobody else is"

CREATOR, GUEST = "127.0.0.2", "127.0.0.3"


def run(report):
    with Server() as server:
        take_over(report, server, "Rehearsal", restart=False)
        take_over(report, server, "Concert", restart=True)


def take_over(report, server, name, restart):
    creator = Client(server, CREATOR)
    creator.join(name, "Ada", options={"persistent": True})
    guest = Client(server, GUEST)
    if restart:
        server.restart()
        guest = Client(server, GUEST)
        guest.join(name, "Ben")
        report.sent(f"the server restarts, and a guest comes to “{name}” first: {guest.role()}")
    else:
        guest.join(name, "Ben")
        creator.leave()
        creator.close()
        report.sent(f"the creator of “{name}” leaves, and the guest is {guest.role()}")
    tab = Client(server, GUEST, guest.identity)
    tab.join(name, "Tab")
    report.sent(f"the guest makes a second tab host: {guest.attempt('room.role', connectionId=tab.id, role='host')}")
    back = Client(server, CREATOR, creator.identity)
    report.sent(f"the creator comes back: {arrive(back, name)}")
    report.check(back.role() == "host", f"the creator is host: {back.role()}")
    for title, client in {"the guest": guest, "the guest's tab": tab}.items():
        role = client.role()
        report.check(role == "guest", f"{title} is a guest again: {role}")
    demoted = guest.attempt("room.role", connectionId=back.id, role="guest")
    banned = [client.attempt("room.remove", connectionId=back.id, ban=True) for client in (guest, tab)]
    report.check({demoted, *banned} == {"not_permitted"},
                 f"the guest can neither demote nor ban the creator: {demoted}; {', '.join(banned)}")
    back.close()
    again = arrive(Client(server, CREATOR, creator.identity), name)
    report.check(again == "host", f"the creator can leave and come back as host: {again}")
    for client in (guest, tab):
        client.close()


def arrive(client, name):
    try:
        return client.join(name, "Ada")["role"]
    except Refused as refusal:
        return refusal.code
