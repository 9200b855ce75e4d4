"""What happens to people when parts of a cluster fail. Each function is one scenario; its first line is the title."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

from programs import last, until
from visitor import Refused, Visitor

ROOM = "kitchen"


def together(visitors, action):
    """Lets all do something at the same time, and returns the results in order."""
    with ThreadPoolExecutor(len(visitors)) as pool:
        return list(pool.map(action, visitors))


def node_of(cluster, name):
    return next(node for node in cluster.nodes if node.name == name)


def room_of_ten(cluster):
    """Connects ten people through all nodes, and lets them join one room. Returns them."""
    entries = [node.name for node in cluster.nodes]
    visitors = together(range(10), lambda index: Visitor(cluster, entries[index % len(entries)]))
    together(visitors, lambda visitor: visitor.join(ROOM))
    return visitors


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
    matched = together(strangers, search)
    report.figure("seconds", round(time.monotonic() - start, 2))
    report.check(all(matched), "both are matched")
    report.check(strangers[0].node == strangers[1].node, "both are on one node")
    for stranger in strangers:
        stranger.close()


def search(visitor):
    """Searches for a stranger, at another node if the server says so. Returns whether one was found."""
    visitor.request("roulette.start")
    end = time.monotonic() + 15
    while time.monotonic() < end:
        try:
            visitor.client.wait("roulette.matched", seconds=0.5)
            return True
        except Refused:
            pass
        sent = visitor.client.find("error", lambda error: error.get("code") == "elsewhere" and error.get("at"))
        if sent:
            visitor.redirects += 1
            visitor.client.close()
            visitor.connect(sent["at"])
            visitor.request("roulette.start")
    return False


def lose_a_node(cluster, report):
    """A node is killed: its people are in their room again on another node, and the others notice nothing"""
    others = [Visitor(cluster, node.name) for node in cluster.nodes]
    visitors = room_of_ten(cluster)
    lost = node_of(cluster, visitors[0].node)
    life = current_life(cluster, lost)
    lost.program.kill()
    times = together(visitors, lambda visitor: visitor.return_to(ROOM, 20))
    report.figure("seconds until back in the room", f"{min(times):.2f} to {max(times):.2f}")
    report.check(max(times) < 6, "all are back within 6 s")
    report.check(len({visitor.node for visitor in visitors}) == 1, "all are on one node again")
    kept = [other for other in others if other.node != lost.name]
    report.check(not any(other.is_closed() for other in kept), "clients of other nodes keep their connections")
    lost.program.start()
    lost.await_ready()
    report.check(current_life(cluster, lost) not in (None, life), "the node starts again, as another life")
    for visitor in [*visitors, *kept]:
        visitor.close()


def pause_a_node(cluster, report):
    """A node is stopped for 8 s: it finds itself declared dead, and begins another life"""
    visitors = room_of_ten(cluster)
    paused = node_of(cluster, visitors[0].node)
    life = current_life(cluster, paused)
    paused.program.signal(signal.SIGSTOP)
    start = time.monotonic()
    newcomer = Visitor(cluster, next(node.name for node in cluster.nodes if node is not paused))
    newcomer.join(ROOM)
    report.figure("seconds until another node has the room", round(time.monotonic() - start, 2))
    report.check(newcomer.node != paused.name, "the room is on another node")
    last(8, start)
    paused.program.signal(signal.SIGCONT)
    closed = until(lambda: all(visitor.is_closed() for visitor in visitors), 15, 0.2)
    report.check(closed, "the clients of the stopped node are sent away, so that nobody is in two rooms of one name")
    report.check(until(lambda: current_life(cluster, paused) not in (None, life), 20), "the node begins another life")
    paused.await_ready()
    newcomer.close()


def current_life(cluster, node):
    rows = cluster.sql(f"SELECT max(life) FROM node WHERE node = {node.number} AND NOT fenced")
    return int(rows[0][0]) if rows and rows[0][0] else None


def lose_postgres(cluster, report):
    """PostgreSQL is stopped for 20 s: the nodes wait and act again, and requests are answered afterwards"""
    visitors = room_of_ten(cluster)
    lives = {node.name: current_life(cluster, node) for node in cluster.nodes}
    cluster.postgres.program.signal(signal.SIGSTOP)
    start = time.monotonic()
    frozen = until(lambda: not any(node.is_ready for node in cluster.nodes), 10)
    report.figure("seconds until all nodes wait", round(time.monotonic() - start, 2))
    report.check(frozen and time.monotonic() - start < 4, "all nodes wait within 4 s")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: visitors[0].client.request("room.react", seconds=40, reaction="?"))
        last(20, start)
        cluster.postgres.program.signal(signal.SIGCONT)
        resumed = time.monotonic()
        report.check(asked.result()["type"] == "ok", "a request from that time is answered afterwards")
    report.figure("seconds until it was answered", round(time.monotonic() - resumed, 2))
    for node in cluster.nodes:
        node.await_ready(20)
    report.check(
        lives == {node.name: current_life(cluster, node) for node in cluster.nodes}, "no node was declared dead")
    report.check(not any(visitor.is_closed() for visitor in visitors), "nobody has lost the connection")
    for visitor in visitors:
        visitor.close()


def lose_redis(cluster, report):
    """Redis is stopped for 10 s and forgets everything: rooms continue, and new rooms can be opened within 5 s of its return"""
    visitors = room_of_ten(cluster)
    host = Visitor(cluster, visitors[0].node)
    host.request("roulette.count")
    cluster.redis.kill()
    start = time.monotonic()
    report.check(
        all(visitor.client.attempt("room.react", reaction="?") == "ok" for visitor in visitors), "the room goes on")
    code = host.client.attempt("room.join", seconds=10, name="attic", displayName="")
    report.check(code == "cluster_unavailable", f"a new room is refused with cluster_unavailable (was {code})")
    report.check(not any(visitor.is_closed() for visitor in visitors), "nobody has lost the connection")
    last(10, start)
    cluster.redis.start()
    start = time.monotonic()
    until(lambda: host.try_to_join("attic"), 20)
    report.figure("seconds until a room can be opened", round(time.monotonic() - start, 2))
    report.check(time.monotonic() - start < 5, "rooms can be opened again within 5 s")
    other = next(node.name for node in cluster.nodes if node.name != visitors[0].node)
    late = Visitor(cluster, other)
    late.join(ROOM)
    report.check(late.node == visitors[0].node, "the room is still on its node, although Redis has forgotten it")
    for visitor in [*visitors, host, late]:
        visitor.close()


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


ALL = [
    meet_in_a_room, meet_a_stranger, lose_a_node, pause_a_node, lose_postgres, lose_redis, cut_off_from_redis,
]
