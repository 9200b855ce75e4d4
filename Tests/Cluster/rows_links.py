"""Rows in which links between machines are cut. Each function is one row; its first line is the title."""

import time
from concurrent.futures import ThreadPoolExecutor

from browsers import Browsers
from people import (
    BACK_SECONDS, PARLOR, ROOM, Crowd, browsers_node, current_life, figures, listening, others_of)
from programs import last, until
from visitor import Visitor

# Each link is cut on one side, on the other, and on both.
SIDES = [
    ("what the node sends", {"incoming": False}), ("what the node receives", {"outgoing": False}), ("both", {})]
CUT_SECONDS = 10
# A node without a cable, with HAProxy in front of it.
CABLE_SECONDS = 8
# A node that reaches PostgreSQL and Redis but not its people ends its life when neither HAProxy nor clients have reached it for 15 s.
# If only its own packets are lost, it hears its clients until they give up.
LONELY_SECONDS = 30
# A page that was redirected three times, here to a node that it cannot reach, follows no redirect for so long.
PAGE_PAUSE_SECONDS = 30


def cut_from_postgres(cluster, report):
    """The link between a node and PostgreSQL is cut for 10 s: others open its rooms, its media continues, its people come back"""
    with Browsers(cluster, PARLOR) as browsers:
        for side, direction in SIDES:
            node = browsers_node(cluster)
            room = f"{ROOM} {side}"  # A room of its own, because empty rooms stay for a while.
            crowd = Crowd(cluster, node, room)
            other = Crowd(cluster, others_of(cluster, node)[0], f"room of {side}")
            newcomer = Visitor(cluster, other.node.name)
            start, moment = time.monotonic(), time.time()
            with listening(other), ThreadPoolExecutor(1) as pool:
                node.machine.cut([cluster.postgres.machine], **direction)
                returning = pool.submit(crowd.come_back_after_end)
                waits = until(lambda: not node.is_ready, 10)
                report.figure(f"{side}: seconds until the node waits", round(time.monotonic() - start, 2))
                opened = until(lambda: newcomer.try_to_join(room), 20, 0.1) and newcomer.node != node.name
                seconds = time.monotonic() - start
                report.figure(f"{side}: seconds until another node has its room", round(seconds, 2))
                report.check(waits and opened and seconds < BACK_SECONDS, f"another node has its room within {BACK_SECONDS} s")
                last(CUT_SECONDS, start)
                silence = max(browsers.silences(moment))
                report.figure(f"{side}: longest time without media in the two browsers until mending", round(silence, 2))
                report.check(silence < 1, "the browsers' media has no gap of 1 s before the link is mended")
                mended = time.time()
                node.machine.mend()
                times = returning.result()
            report.figure(
                f"{side}: seconds until its people are back, from mending",
                figures({name: seconds - CUT_SECONDS for name, seconds in times.items()}))
            in_time = max(times.values()) - CUT_SECONDS < BACK_SECONDS
            report.check(in_time, f"its people are back within {BACK_SECONDS} s of mending")
            silence = browsers.await_return(mended)
            report.figure(f"{side}: seconds without media in the two browsers", round(silence, 2))
            report.check(silence < BACK_SECONDS, f"the browsers talk again within {BACK_SECONDS} s")
            report.check(not other.broken() and other.are_connected(), "rooms, chats and calls of another node go on")
            node.await_ready()
            for leaving in (crowd, other, newcomer):
                leaving.close()


def cut_from_redis(cluster, report):
    """The link between a node and all Redis is cut for 10 s: what it has goes on, and it opens rooms again within 5 s of mending"""
    with Browsers(cluster, PARLOR) as browsers:
        node = browsers_node(cluster)
        crowd = Crowd(cluster, node, ROOM)
        others = others_of(cluster, node)
        lives = {node.name: current_life(cluster, node) for node in cluster.nodes}
        moment = time.time()
        for number, (side, direction) in enumerate(SIDES):
            hosts = [Visitor(cluster, one.name) for one in (node, others[0])]
            start = time.monotonic()
            node.machine.cut(cluster.redis.machines, **direction)
            code = hosts[0].client.attempt("room.join", seconds=CUT_SECONDS, name=f"attic {number}", displayName="")
            report.check(code == "cluster_unavailable", f"{side}: a new room is refused with cluster_unavailable (was {code})")
            report.check(hosts[1].try_to_join(f"cellar {number}"), "another node opens new rooms")
            report.check(not crowd.broken(), "rooms, chats and calls of the node go on")
            crowd.listen(max(0.1, CUT_SECONDS - (time.monotonic() - start)))
            node.machine.mend()
            start = time.monotonic()
            opened = until(lambda: hosts[0].try_to_join(f"attic {number}"), 20, 0.1)
            seconds = time.monotonic() - start
            report.figure(f"{side}: seconds until a room can be opened", round(seconds, 2))
            report.check(opened and seconds < 5, "a room can be opened within 5 s of mending")
            for host in hosts:
                host.close()
        report.check(
            lives == {node.name: current_life(cluster, node) for node in cluster.nodes}, "no node was declared dead")
        report.check(crowd.are_connected() and not crowd.broken(), "nobody has lost the connection")
        silence = max(browsers.silences(moment))
        report.figure("longest time without media in the two browsers", round(silence, 2))
        report.check(silence < 1, "the browsers' media has no gap of 1 s")


def cut_from_people(cluster, report):
    """The link between a node and HAProxy with all people is cut: they come in at another node, and are all back in the end"""
    limit = LONELY_SECONDS
    with Browsers(cluster, PARLOR) as browsers:
        for side, direction in SIDES:
            node = browsers_node(cluster)
            room = f"{ROOM} {side}"  # A room of its own, because empty rooms stay for a while.
            crowd = Crowd(cluster, node, room)
            other = Crowd(cluster, others_of(cluster, node)[0], f"room of {side}")
            life = current_life(cluster, node)
            moment = time.time()
            node.machine.cut([cluster.proxy_machine, cluster.network.visitors], **direction)
            with listening(other):
                times = crowd.come_back_after_end(limit)
                silence = browsers.await_return(moment, limit + PAGE_PAUSE_SECONDS)
            node.machine.mend()
            report.figure(f"{side}: seconds until back", figures(times))
            report.figure(f"{side}: seconds without media in the two browsers", round(silence, 2))
            report.check(max(times.values()) < limit, f"everyone is back within {limit} s")
            report.check(silence < limit + PAGE_PAUSE_SECONDS, f"the browsers talk again within {limit + PAGE_PAUSE_SECONDS} s")
            report.check(not other.broken() and other.are_connected(), "rooms, chats and calls of another node go on")
            begun = until(lambda: current_life(cluster, node) not in (None, life), 20)
            report.check(begun, "the node begins another life")
            node.await_ready()
            for leaving in (crowd, other):
                leaving.close()


def pull_the_cable(cluster, report):
    """A node loses all its links at once, as without power: everyone on it talks again within 8 s on another node"""
    with Browsers(cluster, PARLOR) as browsers:
        node = browsers_node(cluster)
        crowd = Crowd(cluster, node, ROOM)
        others = [Crowd(cluster, other, f"room of {other.name}") for other in others_of(cluster, node)]
        life = current_life(cluster, node)
        everything = [
            cluster.proxy_machine, cluster.network.visitors, cluster.postgres.machine, *cluster.redis.machines]
        moment = time.time()
        node.machine.cut(everything)
        times = crowd.come_back_after_end()
        silence = browsers.await_return(moment)
        report.figure("seconds until back", figures(times))
        report.figure("seconds without media in the two browsers", round(silence, 2))
        report.figure("the call went on", "yes" if crowd.call_continues else "no, its two people came to different nodes")
        report.check(max(*times.values(), silence) < CABLE_SECONDS, f"everyone on it talks again within {CABLE_SECONDS} s")
        report.check(not any(other.broken() for other in others), "rooms, chats and calls of the other nodes go on")
        node.machine.mend()
        report.check(until(lambda: current_life(cluster, node) not in (None, life), 20), "the node begins another life")
        node.await_ready()


def split_redis(cluster, report):
    """The primary Redis and one node are cut off from the other Redis and nodes: no room is ever on two nodes"""
    cluster.redis.await_sentinels()
    primary = cluster.redis.primary
    node = cluster.nodes[0]
    others = others_of(cluster, node)
    replicas = [server.machine for server in cluster.redis.servers if server is not primary]
    here, there = Visitor(cluster, node.name), Visitor(cluster, others[0].name)
    # Who is admitted to the room, in the order of the answers.
    owners = []
    start = time.monotonic()
    primary.machine.cut([*replicas, *(other.machine for other in others)])
    node.machine.cut(replicas)

    def enter(visitor):
        if until(lambda: visitor.try_to_join(ROOM), start + 25 - time.monotonic(), 0.1):
            owners.append((round(time.monotonic() - start, 2), visitor.node))
    with ThreadPoolExecutor(2) as pool:
        entering = [pool.submit(enter, visitor) for visitor in (here, there)]
        last(12, start)
        primary.machine.mend()
        node.machine.mend()
        for one in entering:
            one.result()
    report.figure("seconds until each was in the room, and the node", owners)
    connected = {visitor.node for visitor in (here, there) if not visitor.is_closed() and
                 visitor.client.attempt("room.react", reaction="?") == "ok"}
    report.figure("nodes on which the room works at the end", sorted(connected))
    report.check(len(connected) == 1, "never two owners")
    report.check(until(lambda: len([server for server in cluster.redis.servers if server.is_primary]) == 1, 20, 0.2),
                 "there is one primary at the end")
    for one in cluster.nodes:
        one.await_ready(40)
    late = Visitor(cluster, others[1].name)
    late.join(ROOM)
    report.check({late.node} == connected, "another newcomer comes to the same node")


ALL = [cut_from_postgres, cut_from_redis, cut_from_people, pull_the_cable, split_redis]
