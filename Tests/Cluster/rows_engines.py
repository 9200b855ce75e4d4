"""Rows in which PostgreSQL or Redis fails. Each function is one row; its first line is the title."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

from browsers import Browsers
from people import PARLOR, ROOM, node_of, others_of, room_of_ten, together
from programs import http_get, last, until
from scenes import Undisturbed
from visitor import Visitor

# How long Redis is away: usually, and with --all.
REDIS_SECONDS, LONG_REDIS_SECONDS = 40, 420


def check_new_rooms(newcomers, start, limit, report):
    """Lets each open a room as soon as that works, and checks that it does for all within `limit` seconds since the start."""
    def open_room(newcomer):
        room = f"opened by {newcomer.node}"
        until(lambda: newcomer.enter(room), limit + 40)
        return time.monotonic() - start
    times = together(newcomers, open_room)
    report.figure("seconds until a room can be opened, on each node", [round(time, 2) for time in times])
    report.check(max(times) < limit, f"rooms can be opened again within {limit} s on each node")


def lose_postgres(cluster, report):
    """PostgreSQL is stopped for 20 s: the nodes wait and act again, requests are answered afterwards, and media continues"""
    with Browsers(cluster, PARLOR) as browsers:
        undisturbed = Undisturbed(cluster, browsers)
        start = time.monotonic()
        cluster.postgres.program.signal(signal.SIGSTOP)
        report.measure("all nodes wait", lambda: [node.require_ready(False) for node in cluster.nodes], 4, start)
        asker = undisturbed.crowds[0].groups["room"].members[0]
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(lambda: asker.client.request("room.react", seconds=40, reaction="?"))
            last(20, start)
            report.figure("HTTP status of a page that is opened meanwhile", http_get(cluster.host, cluster.port, "/")[0])
            cluster.postgres.program.signal(signal.SIGCONT)
            resumed = time.monotonic()
            report.check(asked.result()["type"] == "ok", "a request from that time is answered afterwards")
        report.figure("seconds until it was answered", round(time.monotonic() - resumed, 2))
        for node in cluster.nodes:
            node.await_ready(20)
        undisturbed.check(report)


def fail_over_redis(cluster, report):
    """The primary Redis and its Sentinel are killed: a room can be opened again after the failover, and nobody is disconnected"""
    cluster.redis.await_sentinels()
    with Browsers(cluster, PARLOR) as browsers:
        undisturbed = Undisturbed(cluster, browsers)
        newcomers = [Visitor(cluster, node.name) for node in cluster.nodes]
        lost = cluster.redis.primary
        start = time.monotonic()
        for program in lost.programs:
            program.kill()
        check_new_rooms(newcomers, start, 8, report)
        undisturbed.check(report)
        kept = [cluster.redis.owner_of_room(f"room of {node.name}") for node in cluster.nodes]
        report.check(kept == [node.number for node in cluster.nodes], f"rooms are on the nodes where they were (now {kept})")
        # It comes back as a replica, and a second failover leads to another server.
        for program in lost.programs:
            program.start()
        report.measure("the killed Redis comes back as a replica", lost.require_replica, 30)


def lose_redis(cluster, report):
    """All Redis are stopped and forget everything: rooms, chats and calls continue, and everything works again within 5 s of their return"""
    seconds = LONG_REDIS_SECONDS if report.options.all else REDIS_SECONDS
    report.figure("seconds without Redis", seconds)
    with Browsers(cluster, PARLOR) as browsers:
        undisturbed = Undisturbed(cluster, browsers)
        host = Visitor(cluster, cluster.nodes[0].name)
        host.request("roulette.count")  # Answered when the node has the person's place.
        cluster.redis.kill()
        start = time.monotonic()
        code = host.client.attempt("room.join", seconds=10, name="attic", displayName="")
        report.check(code == "cluster_unavailable", f"a new room is refused with cluster_unavailable (was {code})")
        report.check(all(together(undisturbed.crowds, lambda crowd: crowd.listen(seconds - (time.monotonic() - start)))),
                     "nobody has lost the connection")
        report.check(not any(crowd.broken() for crowd in undisturbed.crowds), "rooms, chats and calls continue meanwhile")
        last(seconds, start)
        cluster.redis.start()
        start = time.monotonic()
        newcomers = [Visitor(cluster, node.name) for node in cluster.nodes]
        check_new_rooms(newcomers, start, 5, report)
        late = Visitor(cluster, cluster.nodes[1].name)
        late.join(f"room of {cluster.nodes[0].name}")
        report.check(late.node == cluster.nodes[0].name, "a room is still on its node, although Redis has forgotten it")
        undisturbed.check(report)


def cut_off_from_redis(cluster, report):
    """A node is cut off from Redis alone, which forgets everything at that moment: no room is on two nodes"""
    visitors = room_of_ten(cluster)
    alone = node_of(cluster, visitors[0].node)
    alone.machine.cut(cluster.redis.machines)
    cluster.redis.kill()
    cluster.redis.start()
    newcomer = Visitor(cluster, others_of(cluster, alone)[0].name)
    report.measure("another node has the room", lambda: newcomer.enter(ROOM, not_on=alone.name), 60)
    # The first owner must have ended before: it answers nobody any more.
    answers = sum(not visitor.is_closed() for visitor in visitors)
    report.figure("members still connected to the first owner", answers)
    report.check(answers == 0, "never two owners")
    alone.machine.mend()
    alone.await_ready(60)
    newcomer.close()


ALL = [lose_postgres, lose_redis, fail_over_redis, cut_off_from_redis]
