"""Rows in which a node fails or is taken out of service. Each function is one row; its first line is the title."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

from browsers import Browsers, Robots
from people import (
    BACK_SECONDS, PARLOR, ROOM, Crowd, browsers_node, crowds_on, figures, lives_of, others_of, room_of_ten, search, together)
from programs import last, require
from scenes import Scene, check_lives, check_media
from visitor import Visitor


def meet_in_a_room(cluster, report):
    """People who come in at different nodes meet in a room after one redirect"""
    visitors = room_of_ten(cluster)
    report.figure("redirects of each", sorted(visitor.redirects for visitor in visitors))
    report.check(max(visitor.redirects for visitor in visitors) <= 1, "nobody is redirected more than once")
    report.check(len({visitor.node for visitor in visitors}) == 1, "all are on the room's node")
    seen = visitors[0].client.request("room.react", reaction="?")["type"]
    report.check(seen == "ok", "the room answers")
    for visitor in visitors:
        visitor.close()


def meet_a_stranger(cluster, report):
    """Two strangers who come in at different nodes meet"""
    entries = [node.name for node in cluster.nodes][:2]
    start = time.monotonic()
    strangers = [Visitor(cluster, entry) for entry in entries]
    together(strangers, search)
    report.figure("seconds until both are matched", round(time.monotonic() - start, 2))
    report.check(strangers[0].node == strangers[1].node, "both are on one node")
    for stranger in strangers:
        stranger.close()


def lose_a_node(cluster, report):
    """A node is killed: everyone on it talks again within 6 s on another node, and nobody else notices anything"""
    with Browsers(cluster, PARLOR) as browsers:
        scene = Scene(cluster, browsers, size=6, pairs=2)
        robots = Robots(cluster, scene.others[0].node, 10)
        scene.node.program.kill()
        scene.check_return(report, scene.crowd.come_back(), BACK_SECONDS)
        report.check(all(other.are_connected() for other in scene.others), "nobody on the other nodes has lost the connection")
        counted = robots.result()
        report.figure("packets that robots on another node lost", f"{counted['lost']} of {counted['expected']}")
        report.check(counted["lost"] == 0, "robots on another node lose no media")
        scene.node.program.start()
        scene.await_another_life(report)


def pause_a_node(cluster, report):
    """A node is stopped for 5 s: its people talk again within 6 s on another node, and it begins another life"""
    with Browsers(cluster, PARLOR) as browsers:
        scene = Scene(cluster, browsers)
        start = time.monotonic()
        scene.node.program.signal(signal.SIGSTOP)
        with ThreadPoolExecutor(1) as pool:
            returning = pool.submit(scene.crowd.come_back_after_end)
            last(5, start)
            scene.node.program.signal(signal.SIGCONT)
            times = returning.result()
        scene.check_return(report, times, BACK_SECONDS)
        scene.await_another_life(report)


def require_connections(node, count):
    """Raises `NotYet` unless the node has as many connections."""
    shown = node.confab("node", "show")
    found = re.search(r"(\d+) connections", shown)
    require(found and int(found[1]) == count, f"`confab node show` says {shown!r}, and {count} connections should be left")


def drain_a_node(cluster, report):
    """A node is drained with a room, chats and a call on it: they continue, everyone else leaves within 60 s, and it is taken back"""
    with Browsers(cluster, PARLOR) as browsers:
        drained = browsers_node(cluster)
        crowd = Crowd(cluster, drained, ROOM)
        idle = [Visitor(cluster, drained.name) for _ in range(20)]
        start, moment = time.monotonic(), time.time()
        report.figure("the command says", drained.confab("node", "drain", drained.name))
        ends = together(idle, lambda visitor: visitor.await_end(60))
        report.figure("seconds until the last of 20 idle people had left", round(time.monotonic() - start, 2))
        report.check(None not in ends, "everyone who is idle leaves within 60 s")
        busy = len(crowd.members) + 2
        report.measure(
            f"only the {busy} people in rooms, chats and the call are left", lambda: require_connections(drained, busy), 60,
            start)
        report.measure("/ready says that it is not ready", lambda: drained.require_ready(False), 1)
        newcomers = [Visitor(cluster) for _ in range(6)]
        report.check(all(visitor.node != drained.name for visitor in newcomers), "newcomers come to other nodes")
        crowd.listen(max(1, 20 - (time.monotonic() - start)))
        report.check(not crowd.broken(), f"room, chat and call are not cut for {time.monotonic() - start:.0f} s")
        check_media(browsers, moment, report)
        # Through another node, as from a machine that cannot reach this one.
        other = next(node for node in cluster.nodes if node is not drained)
        report.figure("another node was asked to take it back, and says", other.confab("node", "serve", drained.name))

        def require_newcomer():
            newcomers.append(Visitor(cluster))
            require(newcomers[-1].node == drained.name, f"newcomer {len(newcomers)} came to {newcomers[-1].node}")
        # HAProxy chooses the node with the fewest connections, so the others are filled first.
        report.measure("a newcomer comes to it again after `confab node serve`", require_newcomer, 20)
        report.check(not crowd.broken(), "room, chat and call still continue")


def upgrade(cluster, report):
    """All nodes are restarted one after the other, from the previous release to this one: everyone comes back each time"""
    with Browsers(cluster, PARLOR) as browsers:
        crowds = crowds_on(cluster, cluster.nodes, size=3)
        for _, node in report.parts((node.name, node) for node in cluster.nodes):
            moment = time.time()
            with_browsers = browsers_node(cluster) is node
            there = [crowd for crowd in crowds if crowd.node is node]
            lives = lives_of(cluster, others_of(cluster, node))
            with ThreadPoolExecutor(len(there) + 1) as pool:
                returning = [pool.submit(crowd.come_back_after_end) for crowd in there]
                report.check(node.use(report.options.executable), "the node stops by itself")
                node.await_ready()
                report.figure("seconds until it serves again", round(time.time() - moment, 2))
                times = [back.result() for back in returning]
            for back in times:
                report.figure("seconds until back", figures(back))
                report.check(max(back.values()) < BACK_SECONDS, f"its people are back within {BACK_SECONDS} s")
            if with_browsers:
                silence = browsers.await_return(moment)
                report.figure("seconds without media in the two browsers", round(silence, 2))
                report.check(silence < BACK_SECONDS, f"the browsers talk again within {BACK_SECONDS} s")
            for crowd in there:  # They are on one of the other nodes now, each group on its own.
                crowd.node = None
            check_lives(cluster, lives, report, "the others keep their lives")
            follow(cluster, crowds)
        working = not any(crowd.broken() for crowd in crowds)
        report.check(working, "all rooms and chats, and the calls that went on, work at the end")
        calls = [crowd.groups["call"].continues for crowd in crowds if "call" in crowd.groups]
        report.figure("calls that went on, because both people came to one node each time", f"{sum(calls)} of {len(calls)}")


upgrade.needs_previous = True


def follow(cluster, crowds):
    """Notes where everyone is who has come back: groups of one crowd can be on different nodes, and so can strangers with new
    partners. These crowds split."""
    for crowd in [crowd for crowd in crowds if not crowd.node]:
        crowds.remove(crowd)
        for name, group in crowd.groups.items():
            for node in cluster.nodes:
                members = [member for member in group.members if member.node == node.name]
                if members:
                    crowds.append(crowd.part(name, members, node))


ALL = [meet_in_a_room, meet_a_stranger, lose_a_node, pause_a_node, drain_a_node, upgrade]
