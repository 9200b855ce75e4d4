"""A client of PerchRTC's protocol with aiortc behind it: it is in a room, offers and answers as PerchRTC does.

    perch_peer.py URL IDENT SECRET ROOM NAME ENVELOPE COLOR

ENVELOPE is flat or layered, COLOR three numbers such as 255,0,0. Commands: leave.
Events: refused (the answer of getToken, or the message before the socket closed), peers (their ids), user (an id),
gone (an id), connected (an id), sees (an id, red, green, blue), hears (an id), closed (the code), fault.
"""

import asyncio
import json
import sys
import urllib.parse
import urllib.request
import uuid

import websockets
from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from aiortc.sdp import candidate_from_sdp

from aiortc_media import Picture, Tone
from driven import obey, tell


def call(url, path, fields):
    """Calls the REST interface and returns `d`, or None after telling the error."""
    form = urllib.parse.urlencode(fields).encode()
    with urllib.request.urlopen(url + path, form, timeout=30) as answer:
        envelope = json.load(answer)
    if envelope["s"] >= 300:
        tell("refused", envelope["e"])
        return None
    return envelope["d"]


class Flat:
    """The form of 2014."""

    def __init__(self, name):
        self.path = "/"

    def write(self, kind, user, data):
        return {"eventName": kind, "targetUserId": user, "data": data}

    def read(self, message):
        kind, body = message.get("type") or message["eventName"], message.get("message", {})
        data = body.get("users") if kind == "peers" else body.get("data", body)
        return kind, message.get("userid"), data


class Layered:
    """The form of 2015."""

    def __init__(self, name):
        self.path = "/v2/"
        self.name = name

    def write(self, kind, user, data):
        return {"t": "u", "m": {"f": f"/default/default/room/{self.name}", "t": user, "o": kind}, "p": data}

    def read(self, message):
        head = message["m"]
        return head["o"], head["f"].rsplit("/", 1)[-1], message.get("p", {})


class Phone:
    def __init__(self, socket, form, color):
        self.socket, self.form, self.color = socket, form, color
        self.connections = {}
        self.tasks = set()

    async def run(self):
        await self.socket.send("ping")
        async for text in self.socket:
            kind, user, data = self.form.read(json.loads(text))
            if kind == "peers":
                tell("peers", [each if isinstance(each, str) else each["id"] for each in data])
            elif kind == "peer_connected":
                tell("user", user)
                await self.offer(user)
            elif kind == "peer_removed":
                tell("gone", user)
                await self.close(user)
            elif kind == "refused":
                tell("refused", f"{data['code']}: {data['message']}")
            else:
                await self.hear(kind, user, data)
        tell("closed", self.socket.close_code)

    async def hear(self, kind, user, data):
        identifier, connection = self.connections.get(user, (None, None))
        if kind == "offer":
            if identifier != data["connectionId"]:
                await self.close(user)
                connection = self.open(user, data["connectionId"])
            await connection.setRemoteDescription(RTCSessionDescription(**data["offer"]))
            await connection.setLocalDescription(await connection.createAnswer())
            await self.say("answer", user, data["connectionId"], answer=self.described(connection))
        elif kind == "bye":
            # PerchRTC closes whatever connection there is, without a look at the id.
            await self.close(user)
        elif connection is None or identifier != data["connectionId"]:
            tell("fault", f"{kind} of {user} for another connection")
        elif kind == "answer":
            await connection.setRemoteDescription(RTCSessionDescription(**data["answer"]))
        elif kind == "ice":
            found = data["iceCandidate"]
            candidate = candidate_from_sdp(found["candidate"].split(":", 1)[1])
            candidate.sdpMid, candidate.sdpMLineIndex = found["id"], found["label"]
            await connection.addIceCandidate(candidate)

    async def offer(self, user):
        await self.close(user)
        identifier = str(uuid.uuid4())
        connection = self.open(user, identifier)
        await connection.setLocalDescription(await connection.createOffer())
        await self.say("offer", user, identifier, offer=self.described(connection))

    def open(self, user, identifier):
        connection = RTCPeerConnection()
        self.connections[user] = identifier, connection
        connection.addTrack(Tone(440))
        connection.addTrack(Picture(self.color))

        @connection.on("connectionstatechange")
        def changed():
            if connection.connectionState == "connected":
                tell("connected", user)

        @connection.on("track")
        def arrived(track):
            self.spawn(self.look(user, track) if track.kind == "video" else self.listen(user, track))

        return connection

    async def look(self, user, track):
        while True:
            frame = await track.recv()
            fields = frame.reformat(width=5, height=5, format="rgb24", interpolation="AREA").planes[0]
            middle = 2 * fields.line_size + 2 * 3
            tell("sees", user, *bytes(fields)[middle:middle + 3])

    async def listen(self, user, track):
        await track.recv()
        tell("hears", user)
        while True:
            await track.recv()

    async def close(self, user):
        _, connection = self.connections.pop(user, (None, None))
        if connection is not None:
            await connection.close()

    def described(self, connection):
        description = connection.localDescription
        return {"type": description.type, "sdp": description.sdp}

    async def say(self, kind, user, identifier, **data):
        await self.socket.send(json.dumps(self.form.write(kind, user, {"connectionId": identifier, **data})))

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.ended)

    def ended(self, task):
        self.tasks.discard(task)
        # A track ends with its connection.
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, MediaStreamError):
            tell("fault", f"{type(error).__name__}: {error}")


async def main(url, ident, secret, room, name, envelope, color):
    form = Flat(name) if envelope == "flat" else Layered(name)
    fields = {"ident": ident, "secret": secret, "domain": "default", "application": "default", "room": room,
              "username": name, "secure": "0"}
    newer = envelope != "flat"
    base = call(url, "/xirsys/signal/list" if newer else "/xirsys/wsList", fields)
    servers = call(url, "/xirsys/ice" if newer else "/xirsys/getIceServers", fields)
    found = call(url, "/xirsys/signal/token" if newer else "/xirsys/getToken", fields)
    if not (base and found):
        return
    assert isinstance(servers["iceServers"], list)
    async with websockets.connect(base["value"] + form.path + found["token"], proxy=None, max_size=None) as socket:
        phone, loop = Phone(socket, form, [int(part) for part in color.split(",")]), asyncio.get_running_loop()
        obey({"leave": lambda: asyncio.run_coroutine_threadsafe(socket.close(), loop).result()})
        await phone.run()


asyncio.run(main(*sys.argv[1:]))
