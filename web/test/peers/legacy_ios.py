"""The protocol as the iOS client of 2012 used it, with the client's limitations and crashes.

    legacy_ios.py PORT

Commands: live (its own stream is published), press (the Next button), session_disconnected (any session), close
(the WebSocket), vanish (hang up without closing it), raw (text).
A crash of the original is a traceback here, and status 1.
"""

import base64
import json
import os
import re
import socket
import struct
import sys
import threading
import time

from driven import obey, tell

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class WebSocket:
    """The subset of RFC 6455 that the client needs. It answers pings, which is the only sign of activity that it ever sent."""

    def __init__(self, port, path):
        self.stream, self.reader = connect(port)
        self.writing = threading.Lock()
        key = base64.b64encode(os.urandom(16)).decode()
        request(self.stream, path, port, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                f"Sec-WebSocket-Key: {key}", f"Origin: http://127.0.0.1:{port}")
        status, headers = head(self.reader)
        assert status == 101, f"the upgrade was refused with {status}"
        assert "sec-websocket-protocol" not in headers, "the server chose a subprotocol that was not offered"

    def write(self, opcode, payload):
        mask = os.urandom(4)
        size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
        with self.writing:
            self.stream.sendall(bytes([0x80 | opcode]) + size + mask + masked)

    def read(self):
        """Returns the next frame: its opcode and payload."""
        first, second = self.exactly(2)
        assert first & 0x80, "the server splits messages, and that client did not expect it"
        length = second & 0x7F
        if length == 126:
            length = struct.unpack(">H", self.exactly(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.exactly(8))[0]
        return first & 0x0F, self.exactly(length)

    def exactly(self, length):
        data = self.reader.read(length)
        if len(data) < length:
            raise EOFError
        return data


def connect(port):
    stream = socket.create_connection(("127.0.0.1", port))
    return stream, stream.makefile("rb")


def request(stream, path, port, *headers):
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers, "", ""]
    stream.sendall("\r\n".join(lines).encode())


def head(reader):
    status = int(reader.readline().split()[1])
    lines = iter(lambda: reader.readline().decode().strip(), "")
    return status, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def handshake(port):
    """Makes the handshake. The path has no slash at the end. The text before the first colon of any response is the ID."""
    stream, reader = connect(port)
    request(stream, f"/socket.io/1?t={int(time.time() * 1000)}", port)
    _, headers = head(reader)
    answer = reader.read(int(headers["content-length"])).decode()
    stream.close()
    return answer.split(":")[0]


class Client:
    def __init__(self, port):
        self.socket = WebSocket(port, f"/socket.io/1/websocket/{handshake(port)}")
        self.own = self.partner = None

    def say(self, text):
        self.socket.write(TEXT, text.encode())

    def next(self):
        # The client inserted the ID without escaping, so a quotation mark or a backslash would break the JSON.
        assert re.fullmatch(r'[^"\\]+', self.own), f"crash: {self.own} cannot be pasted into JSON"
        self.say('5:::{"name":"next","args":[{"sessionId":"%s"}]}' % self.own)

    def press(self):
        if self.partner:
            self.say('5:::{"name":"disconnectPartners"}')
        else:
            self.next()

    def heard(self, text):
        try:
            event = json.loads(text.split(":::")[-1])
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        name = event["name"]
        argument = event["args"][0] if "args" in event else None
        tell(name, *([argument] if argument is not None else []))
        if name in ("initial", "subscribe"):
            session, token = argument["sessionId"], argument["token"]
            assert isinstance(session, str) and isinstance(token, str), "crash: the client expected strings"
            if name == "initial":
                self.own = session
            else:
                self.partner = session
        elif name == "disconnectPartner" and self.partner:
            # It leaves the partner's session, is notified that a session is disconnected, and requests the next partner.
            self.partner = None
            self.next()

    def run(self):
        try:
            while True:
                opcode, payload = self.socket.read()
                if opcode == TEXT:
                    self.heard(payload.decode())
                elif opcode == PING:
                    tell("pinged")
                    self.socket.write(PONG, payload)
                elif opcode == CLOSE:
                    tell("closed", struct.unpack(">H", payload[:2])[0] if payload else None)
                    self.socket.write(CLOSE, payload)
                    return
        except (EOFError, OSError):
            tell("closed", None)


client = Client(int(sys.argv[1]))
obey({
    "live": client.next,
    "press": client.press,
    "session_disconnected": client.next,
    "close": lambda: client.socket.write(CLOSE, struct.pack(">H", 1000)),
    "vanish": lambda: client.socket.stream.shutdown(socket.SHUT_RDWR),
    "raw": client.say,
})
tell("connect")
client.run()
