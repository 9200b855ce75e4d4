"""A client of the protocol `confab.v1`, written from protocol/README.md and protocol/rooms.md."""

import json
import time

from sockets import TEXT, Rejected, WebSocket, WebSocketClosed

# An acknowledgment is due after so many messages (protocol/README.md §1).
UNACKNOWLEDGED = 32

UNNUMBERED = ("welcome", "ack", "ping", "pong", "bye")


class Refused(Exception):
    """The server did not do what was asked. `code` is that of its error, or `http_503` and `closed_1006` if it sent none. `at` is the
    node of a cluster that does it."""

    def __init__(self, code, message="", at=None):
        super().__init__(f"{code}: {message}" if message else code)
        self.code, self.message, self.at = code, message, at


class Client:
    """One client connection. It reads only inside its methods, all of which end in time."""

    def __init__(self, server, source="127.0.0.1", identity=None, name=None, headers=(), seconds=5.0,
                 path="/v1/socket"):
        deadline = time.monotonic() + seconds
        self.server, self.source = server, source
        self.sequence = self.received = self.acknowledged = 0
        self.messages = []
        try:
            host = getattr(server, "host", "127.0.0.1")
            self.socket = WebSocket(server.port, path, "confab.v1", headers, source, seconds, host)
        except Rejected as rejection:
            raise Refused(f"http_{rejection.status}", rejection.body.decode(errors="replace")) from None
        except (OSError, EOFError) as error:
            raise Refused("no_answer", str(error)) from None
        hello = {"type": "hello", "version": 1, "client": "attacks/1"}
        hello.update({"identity": identity} if identity else {})
        hello.update({"name": name} if name else {})
        try:
            self._send(hello)
            self.welcome = self._take(lambda message: message["type"] in ("welcome", "error"), deadline)
        except Refused:
            self.socket.connection.close()
            raise
        if self.welcome["type"] == "error":
            self.socket.connection.close()
            raise Refused(self.welcome["code"], self.welcome["message"], self.welcome.get("at"))
        self.identity = identity or self.welcome.get("identity")
        self.id = self.welcome["connectionId"]

    def _send(self, message):
        try:
            self.socket.send(TEXT, json.dumps(message).encode())
        except OSError as error:
            raise Refused("closed", str(error)) from None

    def _read(self, deadline):
        try:
            message = json.loads(self.socket.receive(deadline))
        except WebSocketClosed as closed:
            raise Refused(f"closed_{closed.code}") from None
        except TimeoutError:
            raise Refused("no_answer", "nothing came in time") from None
        except (OSError, EOFError) as error:
            raise Refused("closed_1006", str(error)) from None
        self._acknowledge(message)
        return message

    def _acknowledge(self, message):
        if "seq" in message:
            self.received = max(self.received, message["seq"])
            if self.received - self.acknowledged >= UNACKNOWLEDGED:
                self._send({"type": "ack", "ack": self.received})
                self.acknowledged = self.received

    def arrived(self):
        """Receives once, without waiting, and returns the messages. Call it when a selector reports the connection as readable.
        Other methods do not return these messages."""
        try:
            messages = [json.loads(payload) for payload in self.socket.arrived()]
        except WebSocketClosed as closed:
            raise Refused(f"closed_{closed.code}") from None
        except (OSError, EOFError) as error:
            raise Refused("closed_1006", str(error)) from None
        for message in messages:
            self._acknowledge(message)
        return messages

    def _take(self, matches, deadline):
        """Returns the first message that matches, and keeps the others for later."""
        for index, message in enumerate(self.messages):
            if matches(message):
                return self.messages.pop(index)
        while True:
            message = self._read(deadline)
            if matches(message):
                return message
            if message["type"] not in UNNUMBERED:
                self.messages.append(message)

    def request(self, verb, seconds=5.0, **members):
        """Sends a request and returns its answer. Raises Refused if that is an error."""
        return self.answer(self.ask(verb, **members), seconds)

    def ask(self, verb, **members):
        """Sends a request. Returns its number, for `answer`."""
        self.sequence += 1
        self._send({"type": verb, "seq": self.sequence, "ack": self.received, **members})
        self.acknowledged = self.received
        return self.sequence

    def answer(self, number, seconds=5.0):
        """Returns the answer to a request. Raises Refused if that is an error."""
        answer = self._take(lambda message: message.get("re") == number, time.monotonic() + seconds)
        if answer["type"] == "error":
            raise Refused(answer["code"], answer["message"], answer.get("at"))
        return answer

    def attempt(self, verb, seconds=5.0, **members):
        """As `request`, but returns `ok`, the type of the answer, or the code of the error."""
        try:
            return self.request(verb, seconds, **members)["type"]
        except Refused as refusal:
            return refusal.code

    def wait(self, kind, matches=lambda message: True, seconds=5.0):
        """Returns the next event of this type that matches. Raises Refused if none comes."""
        return self._take(
            lambda message: message["type"] == kind and matches(message), time.monotonic() + seconds)

    def find(self, kind, matches=lambda message: True):
        """Reads what has arrived. Returns an event of this type that matches, or None."""
        try:
            return self.wait(kind, matches, seconds=0.001)
        except Refused:
            return None

    # Rooms

    def join(self, name=None, display_name="", **members):
        """Joins a room. Returns `room.joined` or `room.waiting`."""
        if name is not None:
            members["name"] = name
        answer = self.request("room.join", displayName=display_name, **members)
        if answer["type"] == "room.joined":
            self.room = answer
        return answer

    def leave(self):
        return self.attempt("room.leave")

    def role(self):
        """Returns the client's role in its room, after all events that have arrived."""
        self.attempt("room.react", reaction="?")
        people = self.room["people"] + [message for message in self.messages if message["type"] == "room.person"]
        return [person["role"] for person in people if person["connectionId"] == self.id][-1]

    # Ends

    def close(self):
        self.socket.close()

    def drop(self):
        self.socket.drop()
