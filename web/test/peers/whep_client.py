"""A client of WHEP (draft-ietf-wish-whep) that knows only an endpoint and a token: aiortc subscribes.

    whep_client.py ENDPOINT TOKEN

Commands: watch, trickle, restart, delete, ask (a method).
Events: created (address, tag, links), connecting, connected, failed, picture and sound (of the watched stream), trickled,
restarted, deleted, status, fault.
"""

import asyncio
import sys

from aiortc import RTCPeerConnection
from aiortc.mediastreams import MediaStreamError

import aiortc_media
from driven import obey, tell
from whip_resource import Resource


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


async def main(endpoint, token):
    resource, loop = Viewer(endpoint, token), asyncio.get_running_loop()

    def command(function):
        # The thread that reads commands waits for the result and reports an error.
        return lambda **members: asyncio.run_coroutine_threadsafe(function(**members), loop).result()

    obey({name: command(getattr(resource, name)) for name in ["watch", "trickle", "restart", "delete", "ask"]})
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
