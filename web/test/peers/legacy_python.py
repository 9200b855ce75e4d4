"""Python's client of Socket.IO 0.9 as published, over one of its transports.

    legacy_python.py PORT TRANSPORT [POLL]

POLL is the number of seconds after which the client gives up a poll and polls again. The client's default is 3.
Commands: emit (name, args, ask), raw (packet), disconnect.
"""

import sys
import threading

import requests
from socketIO_client import BaseNamespace, SocketIO

from driven import obey, tell


class Ended(Exception):
    """The connection ended. Without this error, the client would open another one or poll a dead one forever."""


class Reported(BaseNamespace):
    def on_connect(self):
        tell("connect")

    def on_disconnect(self):
        tell("disconnect")
        raise Ended

    def on_error(self, reason, advice):
        tell("error", reason, advice)
        raise Ended

    def on_message(self, *args):
        tell("message", *[each for each in args if not callable(each)])

    def on_event(self, event, *args):
        tell(event, *[each for each in args if not callable(each)])


def main():
    port, transport = int(sys.argv[1]), sys.argv[2]
    poll = float(sys.argv[3]) if len(sys.argv) > 3 else 3
    client = SocketIO("127.0.0.1", port, Reported, wait_for_connection=False, transports=[transport])
    leaving = threading.Event()

    def emit(name, args=(), ask=False):
        if ask:
            client.emit(name, *args, lambda *data: tell("acknowledged", *data))
        else:
            client.emit(name, *args)

    obey({
        "emit": emit,
        "raw": lambda packet: client._transport.send(packet),
        "disconnect": leaving.set,
    })
    try:
        while not leaving.is_set():
            try:
                client.wait(poll)
            except requests.exceptions.RequestException as error:
                # The poll timed out in the middle of an answer, which the client does not expect.
                tell("torn", str(error))
        client.disconnect()
    except Ended:
        pass


main()
