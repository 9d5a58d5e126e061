"""One network namespace for each member, joined by a bridge in one more; links that can be cut, slowed and reset.

A link is cut by a false neighbour entry: its packets go to nobody, silently, in one direction only. Nothing resets,
as with a cable that was pulled somewhere on the way.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "skchaos"
_CLONE_NEWNET = 0x40000000
_NOBODY = "02:00:00:00:00:fe"
_LIBC = ctypes.CDLL(None, use_errno=True)


def why_not() -> str:
    """Why this machine cannot run it; "" when it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [command for command in ("ip", "ss", "tc") if shutil.which(command) is None]
    if missing:
        return f"{', '.join(missing)} is not installed (iproute2)"
    probe = f"{_PREFIX}-{os.getpid()}-probe"
    try:
        _run("ip", "netns", "add", probe)
        _run("ip", "-n", probe, "link", "add", "br0", "type", "bridge")
        _run("ip", "-n", probe, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    except subprocess.CalledProcessError as error:
        return f"this machine allows no network namespaces: {error.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", probe], capture_output=True)
    return ""


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout


class Net:
    """Names of namespaces carry this process's number: what a killed run left behind is found and removed."""

    def __init__(self, names: Sequence[str]) -> None:
        _remove_abandoned()
        self.names = tuple(names)
        self._hub = self.space("hub")

    def __enter__(self) -> Net:
        try:
            _run("ip", "netns", "add", self._hub)
            self._in_hub("link", "add", "br0", "type", "bridge", "forward_delay", "0")
            self._in_hub("addr", "add", "10.77.0.1/24", "dev", "br0")
            for link in ("lo", "br0"):
                self._in_hub("link", "set", link, "up")
            for name in self.names:
                space = self.space(name)
                _run("ip", "netns", "add", space)
                self._in_hub("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", space)
                self._in_hub("link", "set", name, "master", "br0", "up")
                self._in(name, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
                for link in ("lo", "eth0"):
                    self._in(name, "link", "set", link, "up")
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        for name in (*self.names, "hub"):
            subprocess.run(["ip", "netns", "del", self.space(name)], capture_output=True)

    def address(self, name: str) -> str:
        return f"10.77.0.{11 + self.names.index(name)}"

    def command(self, name: str, *command: str) -> list[str]:
        """The command, as run inside that member's namespace."""
        return ["ip", "netns", "exec", self.space(name), *command]

    @contextmanager
    def as_client(self) -> Iterator[None]:
        """This thread's sockets are made at the hub, from where every member is reached."""
        with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{self._hub}") as there:
            enter(there.fileno())
            try:
                yield
            finally:
                enter(before.fileno())

    # --- faults ------------------------------------------------------------------------------------
    def cut(self, sender: str, receiver: str) -> None:
        """Nothing that `sender` says reaches `receiver` any more."""
        self._in(
            sender, "neigh", "replace", self.address(receiver), "lladdr", _NOBODY, "dev", "eth0", "nud", "permanent"
        )

    def heal(self, sender: str, receiver: str) -> None:
        self._in(sender, "neigh", "del", self.address(receiver), "dev", "eth0")

    def isolate(self, name: str) -> None:
        """The member's port at the bridge forwards nothing: neither other members nor clients reach it."""
        _run("ip", "netns", "exec", self._hub, "bridge", "link", "set", "dev", name, "state", "0")

    def rejoin(self, name: str) -> None:
        _run("ip", "netns", "exec", self._hub, "bridge", "link", "set", "dev", name, "state", "3")

    def slow(self, name: str, mbit: float) -> None:
        """What the member sends goes out at this rate."""
        # The bucket must last from one tick of the kernel's clock to the next, or the rate is never reached.
        burst_kb = max(16, mbit)
        shape = ("tbf", "rate", f"{mbit * 1000:.0f}kbit", "burst", f"{burst_kb:.0f}kb", "latency", "200ms")
        _run(*self.command(name, "tc", "qdisc", "replace", "dev", "eth0", "root", *shape))

    def full_speed(self, name: str) -> None:
        _run(*self.command(name, "tc", "qdisc", "del", "dev", "eth0", "root"))

    def reset(self, name: str, peer: str) -> int:
        """Kill the TCP connections between two members, as the kernel's `ss -K` does; returns how many there were."""
        out = _run(*self.command(name, "ss", "-H", "-K", "-t", "dst", self.address(peer)))
        return len(out.splitlines())

    # --- inside ------------------------------------------------------------------------------------
    def space(self, name: str) -> str:
        return f"{_PREFIX}-{os.getpid()}-{name}"

    def _in(self, name: str, *arguments: str) -> None:
        _run("ip", "-n", self.space(name), *arguments)

    def _in_hub(self, *arguments: str) -> None:
        _run("ip", "-n", self._hub, *arguments)


def enter(descriptor: int) -> None:
    """This thread's sockets are made in that namespace from now on."""
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _remove_abandoned() -> None:
    for space in Path("/run/netns").glob(f"{_PREFIX}-*"):
        pid = space.name.split("-")[1]
        if not Path(f"/proc/{pid}").exists():
            subprocess.run(["ip", "netns", "del", space.name], capture_output=True)
