"""Rows in which links between machines are cut. Each function is one row; its first line is the title."""

import time
from concurrent.futures import ThreadPoolExecutor

from browsers import Browsers
from people import BACK_SECONDS, PARLOR, ROOM, Crowd, browsers_node, current_life, figures, listening, lives_of, others_of
from programs import last, require, until
from scenes import Scene, await_another_life, check_lives, check_media
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


def crowds_of(cluster, side):
    """The browsers' node, a crowd on it, and one on another node. Their rooms are new, because empty rooms stay for a while."""
    node = browsers_node(cluster)
    return node, Crowd(cluster, node, f"{ROOM} {side}"), Crowd(cluster, others_of(cluster, node)[0], f"room of {side}")


def cut_from_postgres(cluster, report):
    """The link between a node and PostgreSQL is cut for 10 s: others open its rooms, its media continues, its people come back"""
    with Browsers(cluster, PARLOR) as browsers:
        for side, direction in report.parts(SIDES):
            node, crowd, other = crowds_of(cluster, side)
            newcomer = Visitor(cluster, other.node.name)
            start, moment = time.monotonic(), time.time()
            with listening(other), ThreadPoolExecutor(1) as pool:
                node.machine.cut([cluster.postgres.machine], **direction)
                returning = pool.submit(crowd.come_back_after_end)
                report.measure("the node waits", lambda: node.require_ready(False), BACK_SECONDS, start)
                report.measure(
                    "another node has its room", lambda: newcomer.enter(crowd.room, not_on=node.name), BACK_SECONDS, start)
                last(CUT_SECONDS, start)
                check_media(browsers, moment, report, " before the link is mended")
                mended = time.time()
                node.machine.mend()
                times = returning.result()
            times = {name: seconds - CUT_SECONDS for name, seconds in times.items()}
            report.figure("seconds until its people are back, from mending", figures(times))
            report.check(max(times.values()) < BACK_SECONDS, f"its people are back within {BACK_SECONDS} s of mending")
            silence = browsers.await_return(mended)
            report.figure("seconds without media in the two browsers", round(silence, 2))
            report.check(silence < BACK_SECONDS, f"the browsers talk again within {BACK_SECONDS} s")
            report.check(not other.broken() and other.are_connected(), "rooms, chats and calls of another node continue")
            node.await_ready()
            for leaving in (crowd, other, newcomer):
                leaving.close()


def cut_from_redis(cluster, report):
    """The link between a node and all Redis is cut for 10 s: what it has continues, and it opens rooms again within 5 s of mending"""
    with Browsers(cluster, PARLOR) as browsers:
        node = browsers_node(cluster)
        crowd = Crowd(cluster, node, ROOM)
        others = others_of(cluster, node)
        lives = lives_of(cluster)
        moment = time.time()
        for side, direction in report.parts(SIDES):
            hosts = [Visitor(cluster, one.name) for one in (node, others[0])]
            start = time.monotonic()
            node.machine.cut(cluster.redis.machines, **direction)
            code = hosts[0].client.attempt("room.join", seconds=CUT_SECONDS, name=f"attic {side}", displayName="")
            report.check(code == "cluster_unavailable", f"a new room is refused with cluster_unavailable (was {code})")
            report.measure("another node opens a room", lambda: hosts[1].enter(f"cellar {side}"), 5)
            report.check(not crowd.broken(), "rooms, chats and calls of the node continue")
            crowd.listen(max(0.1, CUT_SECONDS - (time.monotonic() - start)))
            node.machine.mend()
            report.measure("a room can be opened after mending", lambda: hosts[0].enter(f"attic {side}"), 5)
            for host in hosts:
                host.close()
        check_lives(cluster, lives, report)
        report.check(crowd.are_connected() and not crowd.broken(), "nobody has lost the connection")
        check_media(browsers, moment, report)


def cut_from_people(cluster, report):
    """The link between a node and HAProxy with all people is cut: they come in at another node, and are all back in the end"""
    limit = LONELY_SECONDS
    with Browsers(cluster, PARLOR) as browsers:
        for side, direction in report.parts(SIDES):
            node, crowd, other = crowds_of(cluster, side)
            life = current_life(cluster, node)
            moment = time.time()
            node.machine.cut([cluster.proxy_machine, cluster.network.visitors], **direction)
            with listening(other):
                times = crowd.come_back_after_end(limit)
                silence = browsers.await_return(moment, limit + PAGE_PAUSE_SECONDS)
            node.machine.mend()
            report.figure("seconds until back", figures(times))
            report.figure("seconds without media in the two browsers", round(silence, 2))
            report.check(max(times.values()) < limit, f"everyone is back within {limit} s")
            report.check(silence < limit + PAGE_PAUSE_SECONDS, f"the browsers talk again within {limit + PAGE_PAUSE_SECONDS} s")
            report.check(not other.broken() and other.are_connected(), "rooms, chats and calls of another node continue")
            await_another_life(cluster, node, life, report)
            for leaving in (crowd, other):
                leaving.close()


def pull_the_cable(cluster, report):
    """A node loses all its links at once, as without power: everyone on it talks again within 8 s on another node"""
    with Browsers(cluster, PARLOR) as browsers:
        scene = Scene(cluster, browsers)
        scene.node.machine.cut([
            cluster.proxy_machine, cluster.network.visitors, cluster.postgres.machine, *cluster.redis.machines])
        scene.check_return(report, scene.crowd.come_back_after_end(), CABLE_SECONDS)
        scene.node.machine.mend()
        scene.await_another_life(report)


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
        until(lambda: visitor.enter(ROOM), 25)
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
    report.measure("there is one primary again", lambda: require_one_primary(cluster), 20)
    for one in cluster.nodes:
        one.await_ready(40)
    late = Visitor(cluster, others[1].name)
    late.join(ROOM)
    report.check({late.node} == connected, "another newcomer comes to the same node")


def require_one_primary(cluster):
    names = [server.name for server in cluster.redis.primaries]
    require(len(names) == 1, f"the primaries are {', '.join(names) or 'none'}")


ALL = [cut_from_postgres, cut_from_redis, cut_from_people, pull_the_cable, split_redis]
