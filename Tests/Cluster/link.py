"""A TCP connection to a port of this machine that can be cut."""

import select
import socket
import threading


class Link:
    """Listens on a port of its own and passes bytes on to the target. While it is cut, it is silent, as a broken cable is: open
    connections stay open and carry nothing, and new ones are not accepted."""

    def __init__(self, target):
        self.target = target
        self._is_cut = threading.Event()
        self._changed, self._wake = socket.socketpair()
        self._changed.setblocking(False)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._pairs = {}
        self._closed = False
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self):
        self._is_cut.set()
        self._wake.send(b"x")

    def mend(self):
        self._is_cut.clear()
        self._wake.send(b"x")

    def close(self):
        self._closed = True
        self._wake.send(b"x")
        self._thread.join(5)

    def _run(self):
        while not self._closed:
            waiting = [self._changed]
            if not self._is_cut.is_set():
                waiting += [self._listener, *self._pairs]
            for ready in select.select(waiting, [], [])[0]:
                if ready is self._changed:
                    self._drain()
                elif ready is self._listener:
                    self._accept()
                elif ready in self._pairs:
                    self._pass(ready)
        for end in [self._listener, *self._pairs]:
            end.close()

    def _drain(self):
        try:
            self._changed.recv(4096)
        except BlockingIOError:
            pass

    def _accept(self):
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            near.close()
            return
        self._pairs[near], self._pairs[far] = far, near

    def _pass(self, end):
        other = self._pairs[end]
        try:
            data = end.recv(65536)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for closed in (end, other):
            self._pairs.pop(closed, None)
            closed.close()
