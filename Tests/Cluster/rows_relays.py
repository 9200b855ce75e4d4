"""Rows in which one room is on several nodes, and media crosses between them. Each function is one row; its first line is the title."""

import glob
import json
import os
import subprocess
import time

from machines import find_command
from programs import Failed, last, require, until
from robots import GAP_MILLISECONDS, ROOM_PREFIX, NodeRobots
from visitor import Visitor

# From the start of a connection to the first frame of everyone.
FIRST_FRAME_MILLISECONDS = 600
# How much longer media takes to another node than to the same one.
ADDED_MILLISECONDS = 2
# A loss at which a relay may or may not drop layers, and a loss at which it must.
LOST_PERCENT, MANY_LOST_PERCENT = 5, 15
# The share of frames that may be incomplete despite retransmissions.
INCOMPLETE_SHARE, MANY_INCOMPLETE_SHARE = 0.005, 0.01
THINNED = "Relay loses packets"
RECORDED_SECONDS = 8
# The least that a file has of each track: three quarters of 24 frames and 50 packets of audio a second.
RECORDED_PACKETS = {"video": RECORDED_SECONDS * 18, "audio": RECORDED_SECONDS * 37}


def describe(paths):
    """The delays of these paths, as text."""
    return "; ".join(
        f"n{path['from']} to n{path['to']} p50 {path['delayMedian']:.2f} ms, p99 {path['delay99']:.2f} ms" for path in paths)


def mean_median(paths):
    return sum(path["delayMedian"] for path in paths) / len(paths)


def check_frames(report, paths):
    """Checks that video has arrived on all of these paths, and prints what has not."""
    frames, incomplete = (sum(path[name] for path in paths) for name in ("frames", "incompleteFrames"))
    report.figure("frames across nodes that are not complete", f"{incomplete} of {frames}")
    report.check(paths and all(path["frames"] for path in paths), "video arrives on each path between nodes")
    return incomplete / max(1, frames)


def see_across_nodes(cluster, report):
    """People join a room on another node: the first frame arrives within 600 ms, although nobody on their node received the room before"""
    cluster.await_relays()
    # Two members, on the first two nodes, and then visitors on all nodes in turn.
    with NodeRobots(cluster.nodes, 3, ("--rooms", "1", "--size", "2"), visits=9) as robots:
        measured = robots.result()
    for node, figures in zip(cluster.nodes, measured.by_node):
        report.figure(
            f"milliseconds until a visitor on {node.name} saw both members",
            f"median {figures['firstFramesMedian']:.0f}, most {figures['firstFramesMost']:.0f}, of {figures['visits']}")
    alone = measured.by_node[2]
    report.check(alone["visits"] == 3, "three visitors came to the node without members")
    report.check(
        alone["firstFramesMedian"] < FIRST_FRAME_MILLISECONDS, f"they saw both within {FIRST_FRAME_MILLISECONDS} ms (median)")


def hear_across_nodes(cluster, report):
    """Four people in a room on two nodes get each other's media, at most 2 ms later than on one node"""
    cluster.await_relays()
    nodes = cluster.nodes[:2]
    with NodeRobots(nodes, 10, ("--rooms", "1", "--size", "4")) as robots:
        measured = robots.result()
    across, inside = measured.between(*nodes), measured.inside()
    report.figure("delay across nodes", describe(across))
    report.figure("delay on one node", describe(inside))
    added = mean_median(across) - mean_median(inside)
    report.figure("milliseconds that a relay adds, at the median", round(added, 2))
    report.check(added < ADDED_MILLISECONDS, f"a relay adds less than {ADDED_MILLISECONDS} ms")
    report.check(check_frames(report, across) == 0, "all frames are complete")
    relayed = [figures["relayed"] for figures in measured.by_node]
    report.figure("packets that each node sent to the other one", relayed)
    report.check(all(relayed), "media crossed in both directions")


def lose_packets(cluster, report, percent, seconds, incomplete_share):
    """Four people are in a room on two nodes between which this share of the packets is lost. Returns both nodes."""
    cluster.await_relays()
    nodes = cluster.nodes[:2]
    with NodeRobots(nodes, seconds, ("--rooms", "1", "--size", "4")) as robots:
        robots.await_measuring()
        nodes[0].machine.lose(percent, [nodes[1].machine])
        measured = robots.result()
        nodes[0].machine.mend()
    across = measured.between(*nodes)
    # A node forwards a retransmitted packet as an original packet, because its subscribers have missed it, too.
    late = sum(path["late"] + path["retransmissions"] for path in across)
    packets = sum(path["packets"] for path in across)
    report.figure("packets that arrived late, because they were lost between the nodes and retransmitted", f"{late} of {packets}")
    report.figure("delay across nodes", describe(across))
    report.check(all(path["late"] + path["retransmissions"] for path in across), "packets were lost and retransmitted on each path")
    share = check_frames(report, across)
    report.check(share < incomplete_share, f"more than {1 - incomplete_share:.1%} of the frames are complete")
    for node in nodes:
        report.measure(f"the relays of {node.name} are connected", node.require_relays, 1)
    return nodes


def lose_packets_between_nodes(cluster, report):
    """5 % of the UDP packets between two nodes are lost: they are retransmitted, and frames are complete"""
    nodes = lose_packets(cluster, report, LOST_PERCENT, 15, INCOMPLETE_SHARE)
    # Either is right: chance decides whether more than 5 % are lost.
    thinned = [node.name for node in nodes if THINNED in node.program.text()]
    report.figure("nodes that did not send the largest layers", ", ".join(thinned) or "none")


def lose_many_packets_between_nodes(cluster, report):
    """15 % of the UDP packets between two nodes are lost: the largest layers are no longer sent, and frames are complete"""
    for node in lose_packets(cluster, report, MANY_LOST_PERCENT, 20, MANY_INCOMPLETE_SHARE):
        report.check(THINNED in node.program.text(), f"the log of {node.name} says: {THINNED}")


def lose_a_node_of_a_room(cluster, report):
    """A room is on three nodes, and one that does not have the room is killed: the streams between the others continue"""
    cluster.await_relays()
    with NodeRobots(cluster.nodes, 12, reads_nodes=False) as robots:
        robots.await_measuring()
        start = time.monotonic()
        owner = until(lambda: require(owner_of_robots(cluster), "Redis does not say where the robots' room is"), 5)
        report.figure("the room is on", f"n{owner}")
        lost = next(node for node in cluster.nodes if node.number != owner)
        last(2, start)  # So that the measurement has packets from before.
        lost.program.kill()
        killed = time.monotonic()
        measured = robots.result()
    others = [node for node in cluster.nodes if node is not lost]
    paths = measured.between(*others)
    report.figure(
        "longest time without a packet of a video, in ms",
        ", ".join(f"n{path['from']} to n{path['to']} {path['longestGap']:.0f}" for path in paths))
    report.check(check_frames(report, paths) == 0, "all frames between the others are complete")
    report.check(
        all(path["longestGap"] < GAP_MILLISECONDS for path in paths), f"no video between them stops for {GAP_MILLISECONDS} ms")
    lost.program.start()
    lost.await_ready()
    report.figure("seconds from its end until it is ready again", round(time.monotonic() - killed, 1))
    for node in cluster.nodes:
        report.measure(f"the relays of {node.name} are connected again", node.require_relays, 20)


def record_across_nodes(cluster, report):
    """A room on two nodes is recorded: the archive has the audio and video of everyone, also of those on the other node"""
    if not find_command("ffprobe"):
        return report.skip("ffprobe is not installed. Debian's package is ffmpeg.")
    cluster.await_relays()
    nodes = cluster.nodes[:2]
    with NodeRobots(nodes, RECORDED_SECONDS + 12, ("--rooms", "1", "--size", "4")) as robots:
        robots.await_measuring()
        number = until(lambda: require(owner_of_robots(cluster), "Redis does not say where the robots' room is"), 5)
        owner = next(node for node in cluster.nodes if node.number == number)
        report.figure("the room is on", owner.name)
        # Only people in the room learn the id of its session.
        visitor = Visitor(cluster, owner.name)
        session = visitor.join(cluster.redis.rooms(ROOM_PREFIX)[0])["sessionId"]
        visitor.close()
        archive = owner.confab("archive", "start", session)
        # The notice lasts a second.
        last(RECORDED_SECONDS + 2, time.monotonic())
        owner.confab("archive", "stop", archive)
        folder = until(lambda: completed_archive(owner), 20)
        with open(os.path.join(folder, "archive.json")) as file:
            files = json.load(file)["files"]
        measured = robots.result()
    report.check(check_frames(report, measured.between(*nodes)) == 0, "all frames that the robots got are complete")
    report.check(len({file["streamId"] for file in files}) == len(files) == 4, "the manifest has one file for each of four streams")
    for file in files:
        tracks = recorded_tracks(os.path.join(folder, file["filename"]))
        span = f"{file['startTimeOffset']} to {file['stopTimeOffset']} ms"
        report.figure(file["filename"], f"{file['size']} bytes, {span}, packets {tracks}")
        report.check(
            all(tracks.get(kind, 0) >= least for kind, least in RECORDED_PACKETS.items()), "the file has video and audio")


def completed_archive(node):
    """The folder of the only archive of a node. Raises `NotYet` until its manifest says why it ended."""
    manifests = glob.glob(os.path.join(node.data, "recordings", "*", "archive.json"))
    require(len(manifests) == 1, f"{node.name} has {len(manifests)} manifests")
    with open(manifests[0]) as file:
        require(json.load(file).get("reason"), "the archive has not ended")
    return os.path.dirname(manifests[0])


def recorded_tracks(path):
    """The number of packets of each kind of track in a file."""
    done = subprocess.run(
        [find_command("ffprobe"), "-v", "error", "-count_packets", "-show_entries", "stream=codec_type,nb_read_packets", "-of",
         "json", path], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"ffprobe says about {os.path.basename(path)}: {done.stderr[-300:]}")
    return {stream["codec_type"]: int(stream["nb_read_packets"]) for stream in json.loads(done.stdout)["streams"]}


def owner_of_robots(cluster):
    """The number of the node that has the robots' room, or None."""
    rooms = cluster.redis.rooms(ROOM_PREFIX)
    return cluster.redis.owner_of_room(rooms[0]) if rooms else None


ALL = [
    see_across_nodes, hear_across_nodes, lose_packets_between_nodes, lose_many_packets_between_nodes, lose_a_node_of_a_room,
    record_across_nodes]
for row in ALL:
    row.needs_relays = True
for row in (see_across_nodes, hear_across_nodes):
    row.needs_release = True
