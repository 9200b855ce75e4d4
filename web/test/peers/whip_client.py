"""A client of WHIP (RFC 9725) that knows only an endpoint and a token: aiortc publishes.

    whip_client.py ENDPOINT TOKEN

Commands: publish (color as [red, green, blue], hertz, codec, which is VP8 or H264), trickle, restart, delete, ask (a
method).
Events: redirected (a URL), created (address, tag, links), connecting, connected, failed, trickled, restarted,
deleted, status, fault.
"""

import sys

from aiortc import RTCPeerConnection, RTCRtpSender

from aiortc_media import Picture, Tone
from whip_resource import Resource, run


class Publisher(Resource):
    async def publish(self, color, hertz, codec="VP8"):
        connection = RTCPeerConnection()
        connection.addTransceiver(Tone(hertz), "sendonly")
        video = connection.addTransceiver(Picture(color), "sendonly")
        known = RTCRtpSender.getCapabilities("video").codecs
        video.setCodecPreferences([each for each in known if each.mimeType in (f"video/{codec}", "video/rtx")])
        await self.create(connection)


run(Publisher(*sys.argv[1:]), ["publish", "trickle", "restart", "delete", "ask"])
