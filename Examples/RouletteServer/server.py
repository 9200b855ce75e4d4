"""RouletteTok's server, on OpenTok's SDK for Python. Confab takes the place of OpenTok.

    pip install opentok
    python server.py URL KEY SECRET [PORT]

URL is the address of the Confab server, without a slash at the end; `confab project show` prints the key and the secret. The
server listens on PORT of this machine for plain sockets. Both sides send events, each as a line of JSON:
`{"name": …, "args": [ … ]}`.

Every client publishes in a session of its own, for which it gets a moderator token with `initial`. It sends `next` to get a
partner. Then both get `subscribe`, with a token for the partner's session, or the client gets `empty` and waits.
`disconnectPartners` ends the chat: both get `disconnectPartner`, also if one's socket closes.
"""

import asyncio
import json
import sys

from opentok import Client, MediaModes, Roles


class Visitor:
    """A connected client."""

    def __init__(self, writer, session):
        self.writer, self.session = writer, session
        self.partner = self.last = None

    def send(self, name, *args):
        self.writer.write(json.dumps({"name": name, "args": args}).encode() + b"\n")

    def admit(self, name, session, role):
        """Sends an event with a session and a token for it."""
        token = session.generate_token(role=role)
        self.send(name, {"sessionId": session.session_id, "token": token})


class Roulette:
    """Pairs visitors, never twice in a row with the same partner."""

    def __init__(self, opentok):
        self.opentok = opentok
        self.waiting = []

    async def visit(self, reader, writer):
        # The SDK blocks until the response arrives.
        session = await asyncio.to_thread(self.opentok.create_session, media_mode=MediaModes.routed)
        visitor = Visitor(writer, session)
        visitor.admit("initial", session, Roles.moderator)
        try:
            async for line in reader:
                event = json.loads(line).get("name")
                if event == "next":
                    self.next(visitor)
                elif event == "disconnectPartners":
                    self.part(visitor)
                await writer.drain()
        finally:
            self.part(visitor)
            self.stop_waiting(visitor)
            writer.close()

    def next(self, visitor):
        self.part(visitor)
        self.stop_waiting(visitor)
        partner = next((other for other in self.waiting if other is not visitor.last), None)
        if partner is None:
            self.waiting.append(visitor)
            visitor.send("empty")
            return
        self.waiting.remove(partner)
        for one, other in ((visitor, partner), (partner, visitor)):
            one.partner = one.last = other
            one.admit("subscribe", other.session, Roles.subscriber)

    def part(self, visitor):
        partner = visitor.partner
        if partner is None:
            return
        for one in (visitor, partner):
            one.partner = None
            one.send("disconnectPartner")

    def stop_waiting(self, visitor):
        if visitor in self.waiting:
            self.waiting.remove(visitor)


async def main(url, key, secret, port="3000"):
    roulette = Roulette(Client(key, secret, api_url=url))
    server = await asyncio.start_server(roulette.visit, "127.0.0.1", int(port))
    print("Listening on port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
