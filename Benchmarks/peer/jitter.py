"""Delays the packets of a netfilter queue, each by a random time between zero and a maximum.

    iptables -A INPUT -i line -p udp -j NFQUEUE --queue-num 0 --queue-bypass
    python3 jitter.py 0 80

delays the packets of queue 0 by up to 80 ms. They leave in the order of their times, so packets that are less than 80 ms apart
may overtake each other. When the program ends, the packets in the queue are lost, and the rule lets all others pass.

The program speaks netlink itself (linux/netfilter/nfnetlink_queue.h), because Debian has no binding for Python.
"""

import heapq
import os
import random
import select
import socket
import struct
import sys
import time

NETLINK_NETFILTER = 12
SOL_NETLINK, NETLINK_NO_ENOBUFS = 270, 5
NLM_F_REQUEST, NLM_F_ACK = 1, 4
NLMSG_ERROR = 2
NFNL_SUBSYS_QUEUE = 3 << 8
NFQNL_MSG_PACKET, NFQNL_MSG_VERDICT, NFQNL_MSG_CONFIG = (NFNL_SUBSYS_QUEUE | kind for kind in range(3))
NFQA_CFG_CMD, NFQA_CFG_PARAMS, NFQA_CFG_QUEUE_MAXLEN = 1, 2, 3
NFQNL_CFG_CMD_BIND, NFQNL_COPY_META = 1, 1
NFQA_PACKET_HDR, NFQA_VERDICT_HDR = 1, 2
NF_ACCEPT = 1

# More packets than a link carries in the longest delay.
MAX_PACKETS = 10_000


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind, flags, queue, attributes):
    body = struct.pack(">BBH", socket.AF_UNSPEC, 0, queue) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, 0, 0) + body


def messages(data):
    """Yields the type and the body of each netlink message."""
    while len(data) >= 16:
        length, kind = struct.unpack_from("=IH", data)
        yield kind, data[16:length]
        data = data[(length + 3) & ~3 :]


def packet_id(body):
    """Returns the packet's number in its queue."""
    data = body[4:]
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if kind & 0x3FFF == NFQA_PACKET_HDR:
            return struct.unpack_from(">I", data, 4)[0]
        data = data[(length + 3) & ~3 :]
    raise ValueError("a packet without a number")


def configure(line, queue, value):
    line.send(message(NFQNL_MSG_CONFIG, NLM_F_ACK, queue, value))
    for kind, body in messages(line.recv(65536)):
        error = -struct.unpack_from("=i", body)[0] if kind == NLMSG_ERROR else 0
        if error:
            raise OSError(error, f"the kernel refuses queue {queue}: {os.strerror(error)}")


def run(queue, longest):
    line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    line.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
    line.bind((0, 0))
    configure(line, queue, attribute(NFQA_CFG_CMD, struct.pack(">BxH", NFQNL_CFG_CMD_BIND, socket.AF_INET)))
    configure(line, queue, attribute(NFQA_CFG_QUEUE_MAXLEN, struct.pack(">I", MAX_PACKETS)))
    # The packets' contents are not needed. This comes last, because packets follow it.
    configure(line, queue, attribute(NFQA_CFG_PARAMS, struct.pack(">IB", 0, NFQNL_COPY_META)))
    print("Packets are delayed.", flush=True)
    waiting = []
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([line], [], [], left)[0]:
            now = time.monotonic()
            for kind, body in messages(line.recv(65536)):
                if kind == NFQNL_MSG_PACKET:
                    heapq.heappush(waiting, (now + random.uniform(0, longest), packet_id(body)))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            verdict = struct.pack(">II", NF_ACCEPT, heapq.heappop(waiting)[1])
            line.send(message(NFQNL_MSG_VERDICT, 0, queue, attribute(NFQA_VERDICT_HDR, verdict)))


if __name__ == "__main__":
    run(int(sys.argv[1]), float(sys.argv[2]) / 1000)
