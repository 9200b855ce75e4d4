"""Downloads that nobody reads hold a connection and an open file each."""

import resource
import select
import socket
import time

from client import Client, Refused
from report import Skipped, until
from server import Server
from sockets import connect, request_head

TITLE = "unread downloads do not keep newcomers out"

ADDRESSES = ["127.0.0.1", "127.0.0.2"]
DOWNLOADS = 400
SIZE = 20 * 1024 * 1024
DESCRIPTORS = 1024
# A server that answers nothing for so long, and computes less than this meanwhile, has done what it can. In seconds.
SETTLING, IDLE = 1.5, 0.1
# What a person notices as waiting.
WELCOME_WITHIN = 1.0


def run(report):
    allow_files(2 * DOWNLOADS * len(ADDRESSES))
    with Server(open_files=DESCRIPTORS) as server:
        sender = Client(server, "127.0.0.5")
        sender.join("Films", "Ada")
        # In the room before the attack, to see what it does to others.
        watcher = Client(server, "127.0.0.6")
        watcher.join("Films", "Ben")
        file, status = server.upload(sender, "film.bin", bytes(SIZE), seconds=20)
        report.sent(f"a file of {SIZE >> 20} MiB by a member at 127.0.0.5: {status}")
        # They stay in the room, because the key of a member who left opens nothing.
        members = [Client(server, address) for address in ADDRESSES]
        for member in members:
            member.join("Films")
        downloads = []
        try:
            for member in members:
                downloads += unread_downloads(server, member, file)
            seconds, problem = welcome_time(server, "127.0.0.7")
            answered, closed = settled(server, downloads)
            report.sent(f"{DOWNLOADS} downloads each from {' and '.join(ADDRESSES)}, none of them read; "
                        f"the server may open {DESCRIPTORS} files")
            report.seen(f"a newcomer while they arrive: {problem or 'welcome'} after {seconds * 1000:.0f} ms (not judged: "
                        "a debug build takes seconds for them)")
            report.seen(f"{answered} have begun, {closed} are closed; the server has {server.descriptors()} descriptors")
            judge(report, server, sender)
            status, content = server.download(watcher, file, seconds=5)
            report.check(status == 200 and len(content) == SIZE,
                         f"a member at 127.0.0.6 can still download the file: {status}, {len(content)} bytes")
        finally:
            for download in downloads:
                download.close()


def judge(report, server, sender):
    times = []
    for number in range(3, 8):
        seconds, problem = welcome_time(server, f"127.0.0.{number + 10}")
        times.append(seconds)
        report.seen(f"a newcomer from 127.0.0.{number + 10}: {problem or 'welcome'} after {seconds * 1000:.0f} ms")
        if problem:
            break
    report.check(not problem and max(times) < WELCOME_WITHIN, "five newcomers are welcomed in under a second each")
    status, seconds = server.ready_status("127.0.0.3")
    report.seen(f"/ready for 127.0.0.3: {status} after {seconds * 1000:.0f} ms")
    report.check(status == 200 and seconds < WELCOME_WITHIN, "/ready answers 200 in under a second")
    answer = sender.attempt("room.say", text="Still here")
    report.check(answer == "ok", f"a member who is connected can still write: {answer}")


def allow_files(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise Skipped(f"this machine allows {hard} open files, and the attack needs {count}")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


def unread_downloads(server, member, file):
    files = member.room["files"]
    head = request_head("GET", f"{files['path']}/{file}", [("Authorization", "Bearer " + files["key"])])
    downloads = []
    for _ in range(DOWNLOADS):
        try:
            # The smallest window, so that the server has most of the file left to send.
            download = connect(server.port, member.source, receive_buffer=4096)
            downloads.append(download)
            download.sendall(head)
        except OSError:
            # Refused or cut off. The next one may find a place.
            continue
    return downloads


def counts(downloads):
    """Returns how many connections have something to read, and how many the server has closed."""
    poll = select.poll()
    numbered = {download.fileno(): download for download in downloads}
    for number in numbered:
        poll.register(number, select.POLLIN)
    answered = closed = 0
    for number, _ in poll.poll(0):
        try:
            started = numbered[number].recv(12, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            started = b""
        answered += started.endswith(b"200")
        closed += not started
    return answered, closed


def settled(server, downloads):
    """Waits until all downloads are answered, or the server does nothing anymore. Returns their counts."""
    history = []

    def settle():
        now, count, work = time.monotonic(), counts(downloads), server.processor_time()
        history.append((now, count, work))
        if sum(count) == len(downloads):
            return True
        before = [entry for entry in history if entry[0] < now - SETTLING]
        return before and sum(count) - sum(before[-1][1]) < len(downloads) // 100 and work - before[-1][2] < IDLE

    until(settle, 20, pause=0.1)
    return history[-1][1]


def welcome_time(server, source):
    """Returns how long a newcomer waits for `welcome`, and what came instead."""
    start = time.monotonic()
    try:
        Client(server, source, seconds=3).close()
        return time.monotonic() - start, None
    except Refused as refusal:
        return time.monotonic() - start, refusal.code
