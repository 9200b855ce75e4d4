"""Python's client of Socket.IO 2 or 4, over one of its transports. The version depends on the installed package.

    engine_python.py PORT TRANSPORT

TRANSPORT is `polling`, `websocket`, or `upgrade` for polling followed by an upgrade.
Commands: emit (name, args, ask), raw (packet), disconnect.
"""

import sys

import socketio

from driven import obey, tell


def main():
    port, transport = int(sys.argv[1]), sys.argv[2]
    client = socketio.Client(reconnection=False)

    # Handlers with exactly the arguments of the protocol, as applications write them.
    @client.on("initial")
    def initial(session):
        tell("initial", session)

    @client.on("subscribe")
    def subscribe(session):
        tell("subscribe", session)

    @client.on("empty")
    def empty():
        tell("empty")

    @client.on("disconnectPartner")
    def disconnect_partner():
        tell("disconnectPartner")

    @client.on("error")
    def error(code):
        tell("error", code)

    @client.on("connect")
    def connect():
        tell("connect", client.eio.transport() if callable(client.eio.transport) else client.eio.transport)

    @client.on("disconnect")
    def disconnect(*reason):
        tell("disconnect")

    def emit(name, args=(), ask=False):
        callback = (lambda *data: tell("acknowledged", *data)) if ask else None
        # A list would be sent as one argument, and a tuple as several.
        client.emit(name, tuple(args), callback=callback)

    def raw(packet):
        client.eio.send(packet)

    obey({"emit": emit, "raw": raw, "disconnect": client.disconnect})
    transports = ["polling", "websocket"] if transport == "upgrade" else [transport]
    client.connect(f"http://127.0.0.1:{port}", transports=transports)
    client.wait()


main()
