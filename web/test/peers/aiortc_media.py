"""Test video and audio for aiortc, and analysis of received media. Videos have one color, and audio is one tone."""

import array
import asyncio
import fractions
import math
import time

from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame, VideoFrame

from driven import tell

WIDTH, HEIGHT, PICTURES_PER_SECOND = 320, 240, 15
RATE, SAMPLES = 48000, 960
VIDEO_CLOCK = 90000


class Paced(MediaStreamTrack):
    """Frames at regular intervals from the first one."""

    def __init__(self, per_second):
        super().__init__()
        self.per_second = per_second
        self.count, self.began = 0, None

    async def recv(self):
        if self.readyState != "live":
            raise MediaStreamError
        self.began = self.began or time.monotonic()
        await asyncio.sleep(self.began + self.count / self.per_second - time.monotonic())
        frame = self.frame(self.count)
        self.count += 1
        return frame


def picture(width, height, pixels, count):
    """The frame with this number: `pixels` has red, green and blue of each pixel."""
    frame = VideoFrame(width, height, "rgb24")
    frame.planes[0].update(pixels)
    frame = frame.reformat(format="yuv420p")
    frame.pts = count * VIDEO_CLOCK // PICTURES_PER_SECOND
    frame.time_base = fractions.Fraction(1, VIDEO_CLOCK)
    return frame


class Picture(Paced):
    """A video of one color with a white block that moves near the top, as the tests' pages send."""

    kind = "video"

    def __init__(self, color):
        super().__init__(PICTURES_PER_SECOND)
        self.color = bytes(color)

    def frame(self, count):
        block, left = 20, count * 4 % (WIDTH - 20)
        plain = self.color * WIDTH
        marked = self.color * left + b"\xff\xff\xff" * block + self.color * (WIDTH - block - left)
        return picture(WIDTH, HEIGHT, plain * 8 + marked * block + plain * (HEIGHT - 8 - block), count)


class Tone(Paced):
    """A sine tone at half volume."""

    kind = "audio"

    def __init__(self, hertz):
        super().__init__(RATE / SAMPLES)
        self.hertz = hertz

    def frame(self, count):
        step = 2 * math.pi * self.hertz / RATE
        first = count * SAMPLES
        samples = array.array("h", (round(16000 * math.sin(step * at)) for at in range(first, first + SAMPLES)))
        frame = AudioFrame("s16", "mono", SAMPLES)
        frame.planes[0].update(samples.tobytes())
        frame.pts, frame.sample_rate, frame.time_base = first, RATE, fractions.Fraction(1, RATE)
        return frame


async def watch(track):
    """Reports `picture` for every 15th frame: its size, the average color of its middle, and the frame count."""
    count = 0
    while True:
        frame = await track.recv()
        count += 1
        if count % PICTURES_PER_SECOND:
            continue
        # Scale to five by five fields, each with the average of its area. The middle field is far from the moving block.
        fields = frame.reformat(width=5, height=5, format="rgb24", interpolation="AREA").planes[0]
        middle = 2 * fields.line_size + 2 * 3
        tell("picture", {"width": frame.width, "height": frame.height, "frames": count,
                         "rgb": list(bytes(fields)[middle:middle + 3])})


async def listen(track):
    """Reports `sound` every second: its level, from 0 to 1, and its frequency if it was a plain tone."""
    channel = array.array("h")
    while True:
        frame = await track.recv()
        # Opus is decoded to two interleaved channels.
        samples = array.array("h", bytes(frame.planes[0])[:frame.samples * 4])
        channel.extend(samples[::2])
        if len(channel) < RATE:
            continue
        level = math.sqrt(sum(sample * sample for sample in channel) / len(channel)) / 32768
        rising = sum(before < 0 <= after for before, after in zip(channel, channel[1:]))
        tell("sound", {"level": round(level, 3), "hertz": round(rising * RATE / len(channel))})
        channel = array.array("h")
