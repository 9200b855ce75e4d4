"""A WHIP client like Safari on a phone that is held upright: aiortc publishes.

    whip_phone.py ENDPOINT TOKEN

It offers H.264 before VP8, the high profile first, and sends the first codec of the answer. Its camera lies on its side. If
the answer accepts the header extension with which subscribers turn the picture, the phone sends the camera's frames as they
are. Otherwise it turns them upright.

Commands: publish (sky and ground, the colors above and below, as [red, green, blue]; hertz), delete.
Events: created (address, tag, links), answered (codec, the first of the answer; orientation, whether it accepts the
extension), connecting, connected, failed, deleted, fault.
"""

import sys

from aiortc import RTCPeerConnection, RTCRtpHeaderExtensionParameters
from aiortc.codecs import CODECS, HEADER_EXTENSIONS
from aiortc.sdp import SessionDescription

from aiortc_media import HEIGHT, PICTURES_PER_SECOND, WIDTH, Paced, Tone, picture
from driven import tell
from whip_resource import Resource, run

ORIENTATION = "urn:3gpp:video-orientation"


def offer_like_safari():
    """Changes what aiortc offers: VP8 and two profiles of H.264, each followed by its retransmissions."""
    video = CODECS["video"]
    assert [each.name for each in video] == ["VP8", "rtx", "H264", "rtx", "H264", "rtx"], video
    video[2].parameters["profile-level-id"] = "640c1f"
    video[4].parameters["profile-level-id"] = "42e01f"
    video[:] = [*video[2:], *video[:2]]
    HEADER_EXTENSIONS["video"].append(RTCRtpHeaderExtensionParameters(id=13, uri=ORIENTATION))


class Camera(Paced):
    """Sky above ground, with a horizon that moves. The sky is at the left of frames that are not turned upright."""

    kind = "video"
    is_upright = True

    def __init__(self, sky, ground):
        super().__init__(PICTURES_PER_SECOND)
        self.sky, self.ground = bytes(sky), bytes(ground)

    def frame(self, count):
        horizon = WIDTH // 2 - 10 + count % 20
        column = [self.sky] * horizon + [self.ground] * (WIDTH - horizon)
        if self.is_upright:
            return picture(HEIGHT, WIDTH, b"".join(pixel * HEIGHT for pixel in column), count)
        return picture(WIDTH, HEIGHT, b"".join(column) * HEIGHT, count)


class Phone(Resource):
    async def publish(self, sky, ground, hertz):
        connection, camera = RTCPeerConnection(), Camera(sky, ground)
        connection.addTransceiver(Tone(hertz), "sendonly")
        connection.addTransceiver(camera, "sendonly")
        await self.create(connection)
        video = SessionDescription.parse(connection.remoteDescription.sdp).media[1].rtp
        camera.is_upright = all(extension.uri != ORIENTATION for extension in video.headerExtensions)
        tell("answered", {"codec": video.codecs[0].name, "orientation": not camera.is_upright})


offer_like_safari()
run(Phone(*sys.argv[1:]), ["publish", "delete"])
