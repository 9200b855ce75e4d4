"""Clients of one address come to a large room and leave it, again and again."""

import selectors
import threading
import time

from client import Client, Refused
from server import Server

TITLE = "coming and going of one address does not flood a room"

LISTENERS, CLIENTS, WORKERS = 95, 100, 4
SECONDS = 8
ADDRESS = "127.0.0.2"
# Everyone in a room of 100 may come back once after a break, which costs a message of about 200 bytes to each listener when
# they come and one when they leave. Half as much again is allowed.
MAX_BYTES = 3 * CLIENTS * 200 * LISTENERS
# How long a client that the server asks to wait does so. The connections that go on at once would be closed.
PAUSE = 0.05


def run(report):
    with Server() as server:
        # An address each, so that only the storm comes from one.
        host = Client(server, "127.0.0.3")
        host.join("Hall", "Ada", options={"capacity": 100})
        listeners = [Client(server, f"127.0.1.{number + 1}") for number in range(LISTENERS)]
        for listener in listeners:
            listener.join("Hall", "Listener")
        ears = Ears(listeners)
        clients = [Client(server, ADDRESS) for _ in range(CLIENTS)]
        ears.start()
        answers = storm(clients)
        ears.stop()
        tally = ", ".join(f"{answers.count(answer)} × {answer}" for answer in sorted(set(answers)))
        report.sent(f"{CLIENTS} clients of {ADDRESS} join a room with {LISTENERS} listeners and leave it, for {SECONDS} s")
        report.seen(f"joins are answered with {tally}")
        halves = " and ".join(f"{half / 1e6:.2f} MB" for half in ears.halves)
        report.seen(f"{sum(ears.halves) / 1e6:.2f} MB for the {LISTENERS} listeners: {halves} in the two halves of the time")
        report.check(sum(ears.halves) <= MAX_BYTES, f"that is at most {MAX_BYTES / 1e6:.1f} MB")
        answer = host.attempt("room.say", text="Can you hear me?")
        report.check(answer == "ok", f"the host can still write: {answer}")


class Ears:
    """Reads what arrives at the listeners, counts its bytes, and understands nothing."""

    def __init__(self, listeners):
        self.halves, self.is_over = [0, 0], threading.Event()
        self.selector = selectors.DefaultSelector()
        for listener in listeners:
            self.selector.register(listener.socket.connection, selectors.EVENT_READ)
        self._take()
        self.thread = threading.Thread(target=self._listen, daemon=True)

    def start(self):
        self.began = time.monotonic()
        self.thread.start()

    def stop(self):
        self.is_over.set()
        self.thread.join(timeout=10)
        self.selector.close()

    def _listen(self):
        while not self.is_over.is_set():
            count = self._take(0.05)
            self.halves[time.monotonic() - self.began > SECONDS / 2] += count
        # What is still on its way.
        self.halves[1] += self._take(0.2)

    def _take(self, seconds=0.0):
        count = 0
        while ready := self.selector.select(seconds):
            for key, _ in ready:
                part = key.fileobj.recv(1 << 16)
                count += len(part)
                if not part:
                    self.selector.unregister(key.fileobj)
            if not self.is_over.is_set():
                break
        return count


def storm(clients):
    """Lets all clients come and go until the time is over. Returns the answers to their joins."""
    answers, is_over = [], threading.Event()

    def work(own):
        while own and not is_over.is_set():
            answer = come_and_go(own[0])
            answers.append(answer)
            if answer == "rate_limited":
                # A refused client tries again after a pause, which ends with the storm.
                is_over.wait(PAUSE)
            # The next one's turn. A client that the server has closed has none anymore.
            own = own[1:] if answer.startswith("closed") else own[1:] + own[:1]

    workers = [threading.Thread(target=work, args=(clients[number::WORKERS],), daemon=True) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    threading.Timer(SECONDS, is_over.set).start()
    for worker in workers:
        worker.join(timeout=SECONDS + 10)
    return answers


def come_and_go(client):
    try:
        answer = client.request("room.join", name="Hall", displayName="Passing by")["type"]
        client.request("room.leave")
    except Refused as refusal:
        answer = refusal.code
    client.messages.clear()
    return answer
