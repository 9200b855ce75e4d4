"""One resource of WHIP (RFC 9725) or WHEP on aiortc: created by an offer, restarted and ended by requests.

It uses nothing about this server beyond the two documents. aiortc does not support ICE restarts, so this file
implements one: a second aioice connection replaces the first one below DTLS, which is not affected.
"""

import asyncio
import re
import urllib.error
import urllib.parse
import urllib.request

import aioice
from aiortc import RTCSessionDescription

from driven import obey, tell

# Do not use the user's HTTP proxies for the local server.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_MAX_REDIRECTS = 3


class Refused(Exception):
    """The server answered with an error."""


class Resource:
    def __init__(self, endpoint, token):
        self.endpoint, self.token = endpoint, token
        self.address = self.tag = self.connection = None

    async def request(self, method, address, body="", **headers):
        """Returns the status, headers and body of the answer. Does not follow a redirect, but returns it."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(address, body.encode() or None, headers, method=method)
        try:
            answer = await asyncio.to_thread(_opener.open, request)
        except urllib.error.HTTPError as error:
            if error.code == 307:
                return error.code, error.headers, ""
            raise Refused(f"{error.code} {error.read().decode()}") from None
        with answer:
            return answer.status, answer.headers, answer.read().decode()

    async def create(self, connection):
        """Sends an offer. Media flows after this call, once the state is `connected`."""
        self.connection = connection

        @connection.on("connectionstatechange")
        def changed():
            tell(connection.connectionState)

        await connection.setLocalDescription(await connection.createOffer())
        offer = connection.localDescription.sdp
        endpoint = self.endpoint
        for _ in range(_MAX_REDIRECTS + 1):
            status, headers, answer = await self.request("POST", endpoint, offer, Content_Type="application/sdp")
            if status != 307:
                break
            # RFC 9725 §4.5. Repeat the POST here, because urllib does not follow redirects of a POST.
            endpoint = urllib.parse.urljoin(endpoint, headers["Location"])
            tell("redirected", endpoint)
        assert status == 201 and headers["Content-Type"] == "application/sdp", status
        # The location may be relative (RFC 9110 §10.2.2).
        self.address = urllib.parse.urljoin(endpoint, headers["Location"])
        self.tag = headers["ETag"]
        tell("created", {"address": self.address, "tag": self.tag, "links": headers.get_all("Link") or []})
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def trickle(self):
        """Sends a candidate to the server, like clients that trickle."""
        fragment = self.fragment(self.transport._connection)
        status, _, _ = await self.request(
            "PATCH", self.address, fragment, Content_Type="application/trickle-ice-sdpfrag", If_Match=self.tag)
        tell("trickled", status)

    async def restart(self):
        """Restarts ICE (RFC 9725 §4.3.3). Both sides get new credentials, and media continues on another path."""
        transport, former = self.transport, self.transport._connection
        # Use a separate socket, whose packets go to the existing DTLS transport.
        fresh = aioice.Connection(ice_controlling=True)
        fresh._queue = former._queue
        await fresh.gather_candidates()
        status, headers, answer = await self.request(
            "PATCH", self.address, self.fragment(fresh), Content_Type="application/trickle-ice-sdpfrag", If_Match="*")
        assert status == 200 and headers["ETag"] != self.tag, (status, headers["ETag"])
        self.tag = headers["ETag"]
        fresh.remote_is_lite = "a=ice-lite" in answer
        fresh.remote_username = re.search(r"a=ice-ufrag:(\S+)", answer)[1]
        fresh.remote_password = re.search(r"a=ice-pwd:(\S+)", answer)[1]
        for line in re.findall(r"a=candidate:(.*?)\r?\n", answer):
            await fresh.add_remote_candidate(aioice.Candidate.from_sdp(line))
        await fresh.add_remote_candidate(None)
        await fresh.connect()
        transport._connection, transport._send, transport._recv = fresh, fresh.send, fresh.recv
        await self.forget(former)
        tell("restarted", self.tag)

    async def forget(self, former):
        """Closes the connection's sockets without notifying the transport, which continues."""
        self.transport._RTCIceTransport__monitor_task.cancel()
        self.transport._RTCIceTransport__monitor_task = None
        former._query_consent_task.cancel()
        former._nominated.clear()
        for protocol in former._protocols:
            await protocol.close()

    async def delete(self):
        status, _, _ = await self.request("DELETE", self.address)
        tell("deleted", status)
        await self.connection.close()

    async def ask(self, method, **headers):
        """Sends any request to the resource and returns its status."""
        try:
            status, _, _ = await self.request(method, self.address, **headers)
        except Refused as refusal:
            status = int(str(refusal).split()[0])
        tell("status", status)

    @property
    def transport(self):
        """Bundles all media."""
        return self.connection.getTransceivers()[0].sender.transport.transport

    def fragment(self, ice):
        """Returns an SDP fragment (RFC 8840 §9) with the ICE parameters of one end."""
        first = self.connection.localDescription.sdp.partition("m=")[2].splitlines()[0]
        lines = [f"a=ice-ufrag:{ice.local_username}", f"a=ice-pwd:{ice.local_password}", f"m={first}",
                 f"a=mid:{self.connection.getTransceivers()[0].mid}"]
        lines += [f"a=candidate:{candidate.to_sdp()}" for candidate in ice.local_candidates]
        return "\r\n".join([*lines, "a=end-of-candidates", ""])


def run(resource, names):
    """Runs the commands with these names, which are methods of the resource, until the test ends."""

    async def main():
        loop = asyncio.get_running_loop()

        def command(function):
            # The thread that reads commands waits for the result and reports an error.
            return lambda **members: asyncio.run_coroutine_threadsafe(function(**members), loop).result()

        obey({name: command(getattr(resource, name)) for name in names})
        await asyncio.Event().wait()

    asyncio.run(main())
