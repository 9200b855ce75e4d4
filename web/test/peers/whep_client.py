"""A client of WHEP (draft-ietf-wish-whep) that knows only an endpoint and a token: aiortc subscribes.

    whep_client.py ENDPOINT TOKEN

Commands: watch, trickle, restart, delete, ask (a method).
Events: redirected (a URL), created (address, tag, links), connecting, connected, failed, picture and sound (of the
watched stream), trickled, restarted, deleted, status, fault.
"""

import asyncio
import sys

from aiortc import RTCPeerConnection
from aiortc.mediastreams import MediaStreamError

import aiortc_media
from driven import tell
from whip_resource import Resource, run


class Viewer(Resource):
    tasks = []

    async def watch(self):
        connection = RTCPeerConnection()
        audio = connection.addTransceiver("audio", "recvonly")
        video = connection.addTransceiver("video", "recvonly")
        await self.create(connection)
        for transceiver, attend in ((audio, aiortc_media.listen), (video, aiortc_media.watch)):
            task = asyncio.ensure_future(attend(transceiver.receiver.track))
            task.add_done_callback(self.ended)
            self.tasks.append(task)

    @staticmethod
    def ended(task):
        # A track ends with its connection.
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, MediaStreamError):
            tell("fault", f"{type(error).__name__}: {error}")


run(Viewer(*sys.argv[1:]), ["watch", "trickle", "restart", "delete", "ask"])
