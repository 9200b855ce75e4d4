"""A client of WHIP (RFC 9725) that knows only an endpoint and a token: aiortc publishes.

    whip_client.py ENDPOINT TOKEN

Commands: publish (color as [red, green, blue], hertz, codec, which is VP8 or H264), trickle, restart, delete, ask (a
method).
Events: created (address, tag, links), connecting, connected, failed, trickled, restarted, deleted, status, fault.
"""

import asyncio
import sys

from aiortc import RTCPeerConnection, RTCRtpSender

from aiortc_media import Picture, Tone
from driven import obey
from whip_resource import Resource


class Publisher(Resource):
    async def publish(self, color, hertz, codec="VP8"):
        connection = RTCPeerConnection()
        connection.addTransceiver(Tone(hertz), "sendonly")
        video = connection.addTransceiver(Picture(color), "sendonly")
        known = RTCRtpSender.getCapabilities("video").codecs
        video.setCodecPreferences([each for each in known if each.mimeType in (f"video/{codec}", "video/rtx")])
        await self.create(connection)


async def main(endpoint, token):
    resource, loop = Publisher(endpoint, token), asyncio.get_running_loop()

    def command(function):
        # The thread that reads commands waits for the result and reports an error.
        return lambda **members: asyncio.run_coroutine_threadsafe(function(**members), loop).result()

    names = ["publish", "trickle", "restart", "delete", "ask"]
    obey({name: command(getattr(resource, name)) for name in names})
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
