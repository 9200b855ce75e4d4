"""Rows in which PostgreSQL or Redis fails. Each function is one row; its first line is the title."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

from browsers import Browsers
from people import PARLOR, ROOM, Crowd, current_life, node_of, room_of_ten, together
from programs import last, until
from visitor import Visitor

# How long Redis is away: usually, and with --all.
REDIS_SECONDS, LONG_REDIS_SECONDS = 40, 420


def open_rooms(newcomers, start):
    """Lets each open a room as soon as that works. Returns the seconds since the start, or None, of each."""
    def open_room(newcomer):
        opened = until(lambda: newcomer.try_to_join(f"opened by {newcomer.node}"), 40, 0.1)
        return time.monotonic() - start if opened else None
    return together(newcomers, open_room)


def lose_postgres(cluster, report):
    """PostgreSQL is stopped for 20 s: the nodes wait and act again, requests are answered afterwards, and media continues"""
    with Browsers(cluster, PARLOR) as browsers:
        crowds = [Crowd(cluster, node, f"room of {node.name}") for node in cluster.nodes]
        lives = {node.name: current_life(cluster, node) for node in cluster.nodes}
        start, moment = time.monotonic(), time.time()
        cluster.postgres.program.signal(signal.SIGSTOP)
        frozen = until(lambda: not any(node.is_ready for node in cluster.nodes), 10)
        report.figure("seconds until all nodes wait", round(time.monotonic() - start, 2))
        report.check(frozen and time.monotonic() - start < 4, "all nodes wait within 4 s")
        asker = crowds[0].groups["room"].members[0]
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(lambda: asker.client.request("room.react", seconds=40, reaction="?"))
            last(20, start)
            cluster.postgres.program.signal(signal.SIGCONT)
            resumed = time.monotonic()
            report.check(asked.result()["type"] == "ok", "a request from that time is answered afterwards")
        report.figure("seconds until it was answered", round(time.monotonic() - resumed, 2))
        for node in cluster.nodes:
            node.await_ready(20)
        report.check(
            lives == {node.name: current_life(cluster, node) for node in cluster.nodes}, "no node was declared dead")
        report.check(all(crowd.are_connected() for crowd in crowds), "nobody has lost the connection")
        report.check(not any(crowd.broken() for crowd in crowds), "rooms, chats and calls go on")
        silence = max(browsers.silences(moment))
        report.figure("longest time without media in the two browsers", round(silence, 2))
        report.check(silence < 1, "the browsers' media has no gap of 1 s")


def fail_over_redis(cluster, report):
    """The primary Redis and its Sentinel are killed: a room can be opened again after the failover, and nobody is disconnected"""
    cluster.redis.await_sentinels()
    with Browsers(cluster, PARLOR) as browsers:
        crowds = [Crowd(cluster, node, f"room of {node.name}") for node in cluster.nodes]
        lives = {node.name: current_life(cluster, node) for node in cluster.nodes}
        newcomers = [Visitor(cluster, node.name) for node in cluster.nodes]
        lost = cluster.redis.primary
        start, moment = time.monotonic(), time.time()
        for program in lost.programs:
            program.kill()
        times = open_rooms(newcomers, start)
        report.figure("seconds until a room can be opened, on each node", [time and round(time, 2) for time in times])
        report.check(None not in times and max(times) < 8, "rooms can be opened again within 8 s on each node")
        report.check(all(crowd.are_connected() for crowd in crowds), "nobody has lost the connection")
        report.check(not any(crowd.broken() for crowd in crowds), "rooms, chats and calls go on")
        kept = [cluster.redis.owner_of_room(f"room of {node.name}") for node in cluster.nodes]
        report.check(kept == [node.number for node in cluster.nodes], f"rooms are on the nodes where they were (now {kept})")
        report.check(
            lives == {node.name: current_life(cluster, node) for node in cluster.nodes}, "no node was declared dead")
        silence = max(browsers.silences(moment))
        report.figure("longest time without media in the two browsers", round(silence, 2))
        report.check(silence < 1, "the browsers' media has no gap of 1 s")
        # It comes back as a replica, and a second failover leads to another server.
        for program in lost.programs:
            program.start()
        report.check(until(lambda: lost.is_ready() and not lost.is_primary, 30, 0.2), "the killed Redis comes back as a replica")


def lose_redis(cluster, report):
    """All Redis are stopped and forget everything: rooms, chats and calls go on, and all is whole within 5 s of their return"""
    seconds = LONG_REDIS_SECONDS if report.options.all else REDIS_SECONDS
    report.figure("seconds without Redis", seconds)
    with Browsers(cluster, PARLOR) as browsers:
        crowds = [Crowd(cluster, node, f"room of {node.name}") for node in cluster.nodes]
        lives = {node.name: current_life(cluster, node) for node in cluster.nodes}
        host = Visitor(cluster, cluster.nodes[0].name)
        host.request("roulette.count")  # Answered when the node has the person's place.
        cluster.redis.kill()
        start, moment = time.monotonic(), time.time()
        code = host.client.attempt("room.join", seconds=10, name="attic", displayName="")
        report.check(code == "cluster_unavailable", f"a new room is refused with cluster_unavailable (was {code})")
        report.check(all(together([*crowds], lambda crowd: crowd.listen(seconds - (time.monotonic() - start)))),
                     "nobody has lost the connection")
        report.check(not any(crowd.broken() for crowd in crowds), "rooms, chats and calls go on")
        last(seconds, start)
        cluster.redis.start()
        start = time.monotonic()
        newcomers = [Visitor(cluster, node.name) for node in cluster.nodes]
        times = open_rooms(newcomers, start)
        report.figure("seconds until a room can be opened, on each node", [time and round(time, 2) for time in times])
        report.check(None not in times and max(times) < 5, "rooms can be opened again within 5 s")
        late = Visitor(cluster, cluster.nodes[1].name)
        late.join(f"room of {cluster.nodes[0].name}")
        report.check(late.node == cluster.nodes[0].name, "a room is still on its node, although Redis has forgotten it")
        report.check(
            lives == {node.name: current_life(cluster, node) for node in cluster.nodes}, "no node was declared dead")
        silence = max(browsers.silences(moment))
        report.figure("longest time without media in the two browsers", round(silence, 2))
        report.check(silence < 1, "the browsers' media has no gap of 1 s")


def cut_off_from_redis(cluster, report):
    """A node is cut off from Redis alone, which forgets everything at that moment: no room is on two nodes"""
    visitors = room_of_ten(cluster)
    alone = node_of(cluster, visitors[0].node)
    alone.machine.cut(cluster.redis.machines)
    cluster.redis.kill()
    cluster.redis.start()
    other = next(node for node in cluster.nodes if node is not alone)
    newcomer = Visitor(cluster, other.name)
    start = time.monotonic()
    joined = until(lambda: newcomer.try_to_join(ROOM) and newcomer.node != alone.name, 60, 0.2)
    report.figure("seconds until another node has the room", round(time.monotonic() - start, 2))
    report.check(joined, "the room can be used again")
    # The first owner must have ended before: it answers nobody any more.
    answers = sum(not visitor.is_closed() for visitor in visitors)
    report.figure("members still connected to the first owner", answers)
    report.check(answers == 0, "never two owners")
    alone.machine.mend()
    alone.await_ready(60)
    newcomer.close()


ALL = [lose_postgres, lose_redis, fail_over_redis, cut_off_from_redis]
