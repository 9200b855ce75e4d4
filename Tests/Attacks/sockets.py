"""TCP, HTTP/1.1 and WebSocket (RFC 6455) by hand, so that a client can do what no library would."""

import base64
import hashlib
import os
import socket
import struct
import time

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA


def connect(port, source="127.0.0.1", seconds=5.0, receive_buffer=None, host="127.0.0.1"):
    """Opens a connection to the server from the given address of this machine."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(seconds)
        connection.bind((source, 0))
        connection.connect((host, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        connection.close()
        raise
    return connection


def reset(connection):
    """Closes without a goodbye, as a machine does that loses power."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def request_head(method, path, headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Reader:
    """Reads from a connection up to a deadline."""

    def __init__(self, connection):
        self.connection = connection
        self.buffer = bytearray()

    def fill(self, deadline):
        """Receives something. Raises TimeoutError after the deadline and EOFError at the end."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self.connection.settimeout(left)
        part = self.connection.recv(65536)
        if not part:
            raise EOFError("the server closed the connection")
        self.buffer += part

    def exactly(self, count, deadline):
        while len(self.buffer) < count:
            self.fill(deadline)
        part = bytes(self.buffer[:count])
        del self.buffer[:count]
        return part

    def head(self, deadline):
        """Returns the status and the headers of a response, with names in lower case."""
        while b"\r\n\r\n" not in self.buffer:
            self.fill(deadline)
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        self.buffer = bytearray(rest)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(first.split(" ")[1]), headers


def http(port, method, path, headers=(), body=b"", source="127.0.0.1", seconds=5.0):
    """Sends one request and returns the status, the headers and the body of its response."""
    deadline = time.monotonic() + seconds
    headers = [*headers, ("Connection", "close")]
    if body or method in ("POST", "PUT", "PATCH"):
        headers.append(("Content-Length", str(len(body))))
    connection = connect(port, source, seconds)
    try:
        connection.sendall(request_head(method, path, headers) + body)
        reader = Reader(connection)
        status, answer = reader.head(deadline)
        if status in (204, 304):
            return status, answer, b""
        if "content-length" in answer:
            return status, answer, reader.exactly(int(answer["content-length"]), deadline)
        try:
            while True:
                reader.fill(deadline)
        except EOFError:
            return status, answer, bytes(reader.buffer)
    finally:
        connection.close()


class Rejected(Exception):
    """The server answered an upgrade with something other than 101."""

    def __init__(self, status, body):
        super().__init__(f"HTTP {status}")
        self.status, self.body = status, body


class WebSocketClosed(Exception):
    def __init__(self, code):
        super().__init__(f"closed with {code}")
        self.code = code


class WebSocket:
    """A WebSocket whose messages are single text frames, as the protocol of Confab has them."""

    def __init__(self, port, path, protocol, headers=(), source="127.0.0.1", seconds=5.0,
                 host="127.0.0.1"):
        deadline = time.monotonic() + seconds
        self.connection = connect(port, source, seconds, host=host)
        self.reader = Reader(self.connection)
        key = base64.b64encode(os.urandom(16)).decode()
        upgrade = [
            ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", key), ("Sec-WebSocket-Protocol", protocol), *headers,
        ]
        try:
            self.connection.sendall(request_head("GET", path, upgrade))
            status, answer = self.reader.head(deadline)
            if status != 101:
                raise Rejected(status, self._body(answer, deadline))
            accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
            if answer.get("sec-websocket-accept") != accept or answer.get("sec-websocket-protocol") != protocol:
                raise Rejected(status, b"wrong handshake")
        except BaseException:
            self.connection.close()
            raise

    def _body(self, headers, deadline):
        try:
            return self.reader.exactly(int(headers.get("content-length", 0)), deadline)
        except (EOFError, TimeoutError, OSError):
            return b""

    def send(self, opcode, payload):
        mask = os.urandom(4)
        length = len(payload)
        head = bytes([0x80 | opcode])
        if length < 126:
            head += bytes([0x80 | length])
        elif length < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", length)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", length)
        repeated = mask * (length // 4 + 1)
        masked = int.from_bytes(payload, "big") ^ int.from_bytes(repeated[:length], "big")
        self.connection.settimeout(5)
        self.connection.sendall(head + mask + masked.to_bytes(length, "big"))

    def receive(self, deadline):
        """Returns the next text message. Answers pings meanwhile. A timeout loses nothing that has arrived."""
        while True:
            frame = self._frame()
            if not frame:
                self.reader.fill(deadline)
                continue
            payload = self._text(*frame)
            if payload is not None:
                return payload

    def arrived(self):
        """Receives once, and returns all complete text messages. Call it when a selector reports the connection as readable.
        Raises EOFError at the end."""
        part = self.connection.recv(65536)
        if not part:
            raise EOFError("the server closed the connection")
        self.reader.buffer += part
        payloads = []
        while frame := self._frame():
            payloads.append(self._text(*frame))
        return [payload for payload in payloads if payload is not None]

    def _text(self, opcode, payload):
        """Returns the payload of a text message, or None after any other frame, which is handled."""
        if opcode == TEXT:
            return payload
        if opcode == PING:
            self.send(PONG, payload)
        elif opcode == CLOSE:
            raise WebSocketClosed(struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005)
        return None

    def _frame(self):
        """Takes a frame from the buffer, if it is complete. Servers do not mask theirs (RFC 6455 §5.1)."""
        buffer = self.reader.buffer
        if len(buffer) < 2:
            return None
        length, start = buffer[1] & 0x7F, 2
        if length >= 126:
            start = 4 if length == 126 else 10
            if len(buffer) < start:
                return None
            length = int.from_bytes(buffer[2:start], "big")
        if len(buffer) < start + length:
            return None
        opcode, payload = buffer[0] & 0x0F, bytes(buffer[start:start + length])
        del buffer[:start + length]
        return opcode, payload

    def close(self):
        """Leaves with close code 1000."""
        try:
            self.send(CLOSE, struct.pack(">H", 1000))
        except OSError:
            pass
        self.connection.close()

    def drop(self):
        """Loses the connection without a close frame."""
        reset(self.connection)
