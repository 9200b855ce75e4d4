"""Where the programs of a cluster run: all on this machine, or each on a machine of its own, which is a network namespace.

The machines are connected by a switch, which is in the namespace of this process: the visitors' machine. nftables on the
switch drops packets, because a machine that drops its own packets notices. Everything is in a network, a mount and a process
namespace that `scripts/cluster-test` makes (`unshare`), so nothing is left when the test ends, however it ends.
"""

import os
import shutil
import subprocess

from programs import Failed, require, until

PREFIX = "10.202.0"
VISITORS = f"{PREFIX}.1"
# Visitors come from this many addresses, because the server limits what one address may do.
VISITOR_ADDRESSES = 50
# Debian installs these commands in folders that only root's PATH contains.
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def find_command(name):
    return shutil.which(name, path=PATH)


def run(*command, text=None):
    """Runs a command. Raises Failed with what it wrote if it fails."""
    done = subprocess.run(
        [find_command(command[0]) or command[0], *command[1:]], input=text, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Loopback:
    """This machine, for all programs."""

    address = "127.0.0.1"
    prefix = ()

    def machine(self, name):
        return self

    def sources(self):
        return [self.address]

    def close(self):
        pass


class Machine:
    """A network namespace with one cable to the switch."""

    def __init__(self, name, address):
        self.name, self.address, self.cable = name, address, f"to-{name}"
        self.prefix = (find_command("nsenter"), f"--net=/run/netns/{name}")
        self._lost = {"from": set(), "to": set()}
        self._rain = {}
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "cable", "netns", name)
        run("ip", "link", "set", self.cable, "master", "switch", "up")
        run("ip", "-n", name, "link", "set", "cable", "up")
        run("ip", "-n", name, "address", "add", f"{address}/16", "dev", "cable")

    def cut(self, others, outgoing=True, incoming=True):
        """Drops everything that this machine sends to the others, that they send to it, or both."""
        addresses = {other.address for other in others}
        self._lost["from"] |= addresses if outgoing else set()
        self._lost["to"] |= addresses if incoming else set()
        self._apply()

    def lose(self, percent, others):
        """Drops a share of the UDP packets that this machine sends to the others, and of those that they send to it. A packet is what the
        kernel passes on, so several datagrams that were sent as one (UDP GSO) are lost together."""
        self._rain = {other.address: percent for other in others}
        self._apply()

    def mend(self):
        """Ends all cuts and losses."""
        self._lost, self._rain = {"from": set(), "to": set()}, {}
        self._apply()

    def _apply(self):
        rules = [f"table netdev {self.name} {{}}", f"delete table netdev {self.name}"]
        if any(self._lost.values()) or self._rain:
            # What comes out of the cable enters the switch, and what goes into the cable leaves it.
            hooks = [("from", "ingress", "daddr"), ("to", "egress", "saddr")]
            rules += [f"table netdev {self.name} {{"]
            for direction, hook, end in hooks:
                rules += [f'chain {direction} {{ type filter hook {hook} device "{self.cable}" priority 0;']
                rules += [f"ip {end} {address} drop" for address in sorted(self._lost[direction])]
                rules += [
                    f"ip {end} {address} meta l4proto udp numgen random mod 100 < {percent} drop"
                    for address, percent in self._rain.items()]
                rules += ["}"]
            rules += ["}"]
        run("nft", "-f", "-", text="\n".join(rules) + "\n")

    def close(self):
        # The kernel removes a namespace later, and the cable with it, so the cable's name would not be free.
        run("ip", "link", "delete", self.cable)
        run("ip", "netns", "delete", self.name)


class Visitors:
    """The machine of this process, with many addresses, as the other end of a cut."""

    def __init__(self):
        # As a set of nftables: the browsers' address, and those of the others.
        self.address = f"{{ {VISITORS}, {PREFIX[:-1]}1.0/24 }}"


def has_ipv6(interface):
    """False also on a kernel without IPv6, which lacks the setting."""
    setting = f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"
    if not os.path.exists(setting):
        return False
    with open(setting, encoding="ascii") as file:
        return file.read().strip() == "0"


def has_settled():
    """Raises `NotYet` until the switch has its last address, that of IPv6. The kernel checks it for a second before it can be used."""
    addresses = run("ip", "-6", "address", "show", "dev", "switch", "scope", "link")
    return require(addresses and "tentative" not in addresses, f"the switch has these addresses: {addresses}")


class Network:
    """Machines on a switch. `scripts/cluster-test` has to have made the namespaces of this process."""

    has_switch = False

    def __init__(self):
        self.machines = []
        if not Network.has_switch:
            run("ip", "link", "set", "lo", "up")
            run("ip", "link", "add", "switch", "type", "bridge")
            run("ip", "address", "add", f"{VISITORS}/16", "dev", "switch")
            for source in self.sources():
                run("ip", "address", "add", f"{source}/16", "dev", "switch")
            # Keeps the switch up while no machine has a cable. When the network changes, a browser cancels what a page loads.
            run("ip", "link", "add", "anchor", "type", "veth", "peer", "name", "anchor-end")
            run("ip", "link", "set", "anchor-end", "up")
            run("ip", "link", "set", "anchor", "master", "switch", "up")
            run("ip", "link", "set", "switch", "up")
            if has_ipv6("switch"):
                until(has_settled, 10)
            # Here and not in /run/netns of the whole machine.
            os.makedirs("/run/netns", exist_ok=True)
            run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
            Network.has_switch = True
        self.visitors = Visitors()

    def sources(self):
        """The addresses of visitors."""
        return [f"{PREFIX[:-1]}1.{number}" for number in range(1, VISITOR_ADDRESSES + 1)]

    def machine(self, name):
        machine = Machine(name, f"{PREFIX}.{11 + len(self.machines)}")
        self.machines.append(machine)
        return machine

    def close(self):
        for machine in self.machines:
            machine.close()
