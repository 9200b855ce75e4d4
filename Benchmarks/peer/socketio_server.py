"""The reference of the part `socketio`: python-socketio's own server on aiohttp.

    socketio_server.py

Like RouletteTok's server, it sends each new client its session, and otherwise does nothing. Prints `ready PORT`.
"""

import asyncio
import os

import socketio
from aiohttp import web

server = socketio.AsyncServer(async_mode="aiohttp", cors_allowed_origins="*")


@server.event
async def connect(sid, environment):
    # As long as the ids and tokens of Confab.
    await server.emit("initial", {"sessionId": os.urandom(36).hex(), "token": os.urandom(200).hex()}, to=sid)


async def main():
    application = web.Application()
    server.attach(application)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print("ready", site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
