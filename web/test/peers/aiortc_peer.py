"""A client of `confab.v1` without a browser: aiortc publishes and subscribes through the server.

    aiortc_peer.py URL SESSION TOKEN

Commands: publish (color as [red, green, blue], hertz, codec, which is VP8 or H264), watch (the streams of others,
both present and future ones, one after the other).
Events: joined, published, answer (the server's description), connecting, connected, failed (which side), picture and
sound (of the watched stream), closed, fault.
"""

import asyncio
import json
import sys

import websockets
from aiortc import RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

from aiortc_media import HEIGHT, WIDTH, Picture, Tone, listen, watch
from driven import obey, tell


class Refused(Exception):
    """The server answered with an error."""


class Client:
    def __init__(self, socket, session, token):
        self.socket, self.session, self.token = socket, session, token
        self.sent = self.received = 0
        self.answers = {}
        self.streams = asyncio.Queue()
        self.connections = {}
        self.tasks = set()

    async def ask(self, kind, **members):
        """Sends a request and returns its answer."""
        self.sent += 1
        answer = self.answers[self.sent] = asyncio.get_running_loop().create_future()
        message = {"type": kind, "seq": self.sent, "ack": self.received, **members}
        await self.socket.send(json.dumps(message))
        return await answer

    async def run(self):
        await self.socket.send(json.dumps({
            "type": "hello", "version": 1, "token": self.token, "client": "aiortc"}))
        async for text in self.socket:
            await self.hear(json.loads(text))
        tell("closed", self.socket.close_code, self.socket.close_reason)

    async def hear(self, message):
        kind = message["type"]
        if "seq" in message:
            assert message["seq"] == self.received + 1, f"{kind} is {message['seq']} after {self.received}"
            self.received = message["seq"]
            await self.socket.send(json.dumps({"type": "ack", "ack": self.received}))
        if (answer := self.answers.pop(message.get("re"), None)) is not None:
            if kind == "error":
                answer.set_exception(Refused(f"{message['code']}: {message['message']}"))
            else:
                answer.set_result(message)
        elif kind == "welcome":
            assert "media" in message, "the server routes no media"
            self.spawn(self.join())
        elif kind == "session.streamCreated":
            self.streams.put_nowait(message["stream"]["streamId"])
        elif kind in ("error", "media.closed"):
            tell("fault", f"{kind} {message['code']}: {message['message']}")

    async def join(self):
        joined = await self.ask("session.join", sessionId=self.session, token=self.token)
        assert joined["mediaMode"] == "routed", joined["mediaMode"]
        for stream in joined["streams"]:
            self.streams.put_nowait(stream["streamId"])
        tell("joined", joined["connectionId"])

    async def publish(self, color, hertz, codec):
        connection = self.connect("send")
        audio = connection.addTransceiver(Tone(hertz), "sendonly")
        video = connection.addTransceiver(Picture(color), "sendonly")
        known = RTCRtpSender.getCapabilities("video").codecs
        video.setCodecPreferences([each for each in known if each.mimeType in (f"video/{codec}", "video/rtx")])
        await self.offer("send")
        published = await self.ask(
            "session.publish", sessionId=self.session, hasAudio=True, hasVideo=True, videoType="custom",
            width=WIDTH, height=HEIGHT, audioMid=audio.mid, videoMid=video.mid)
        tell("published", published["stream"]["streamId"])

    async def watch(self):
        connection = self.connect("receive")
        audio = connection.addTransceiver("audio", "recvonly")
        video = connection.addTransceiver("video", "recvonly")
        await self.offer("receive")
        for transceiver, attend in ((audio, listen), (video, watch)):
            self.spawn(attend(transceiver.receiver.track))
        self.spawn(self.subscribe(audio.mid, video.mid))

    async def subscribe(self, audio, video):
        while True:
            await self.ask("session.subscribe", sessionId=self.session, streamId=await self.streams.get(),
                           audio=True, video=True, audioMid=audio, videoMid=video)

    def connect(self, side):
        # Not max-bundle, because aiortc would then use the candidates of the last section. Those of a bundle are in the first.
        connection = RTCPeerConnection()
        self.connections[side] = connection

        @connection.on("connectionstatechange")
        def changed():
            tell(connection.connectionState, side)

        return connection

    async def offer(self, side):
        connection = self.connections[side]
        # The offer contains candidates, because aiortc always sends them. The server does not need them.
        await connection.setLocalDescription(await connection.createOffer())
        answer = await self.ask("media.offer", side=side, sdp=connection.localDescription.sdp)
        tell("answer", answer["sdp"])
        await connection.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.ended)

    def ended(self, task):
        self.tasks.discard(task)
        # A track ends with its connection.
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, MediaStreamError):
            tell("fault", f"{type(error).__name__}: {error}")


async def main(url, session, token):
    address = url.replace("http", "ws", 1) + "/v1/socket"
    async with websockets.connect(address, subprotocols=["confab.v1"], proxy=None) as socket:
        client, loop = Client(socket, session, token), asyncio.get_running_loop()

        def command(function):
            # The thread that reads commands waits for the result and reports an error.
            return lambda **members: asyncio.run_coroutine_threadsafe(function(**members), loop).result()

        obey({"publish": command(client.publish), "watch": command(client.watch)})
        await client.run()


asyncio.run(main(*sys.argv[1:]))
