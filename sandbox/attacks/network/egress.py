"""Group N, ways out of the chamber.

A posture without network isolation would let a probe leave the machine. So a probe sends only to listeners that this
suite opened; whether a foreign address, a metadata service or a ping could get out is judged by looking for a route,
without sending. A name is looked up only where the engine was asked for no network and no way out was seen.
"""

import json
import socket
import uuid

from sandbox.attacks.attack import Arena, Finding, attack, told
from sandbox.attacks.neighbours import beside
from sandbox.attacks.network.beacon import REACH, Beacon, lit, own_addresses

EGRESS = """
import json, os, socket
from probe import *
from reach import *
names, out = ways()
nonce = os.environ["NONCE"]
targets = json.loads(os.environ["TARGETS"])
tried = {f"{kind} {number}": reach(kind, host, port, nonce) for number, (kind, host, port) in enumerate(targets)}
if os.environ["ISOLATED"] and not out:
    def resolve():
        try:
            socket.getaddrinfo("blastdoor.invalid", 80)
        except socket.gaierror as error:
            raise OSError(error.errno, "no name") from None
    tried["dns"] = denied(resolve) or "answered"
tell(interfaces=names, out=out[:8], tried=tried)
"""


async def _egress(arena: Arena, beacon: Beacon) -> Finding:
    isolated = "yes" if arena.posture.network else ""
    env = {"NONCE": beacon.nonce, "TARGETS": json.dumps(beacon.targets), "ISOLATED": isolated}
    outcome = await arena.run(EGRESS, loopback=True, env=env, files={"reach.py": REACH.encode()})
    seen = told(outcome)
    tried = seen.get("tried", {})
    ran = len(tried) >= len(beacon.targets) and "lo" in seen.get("interfaces", [])
    blocked = ran and not beacon.hits and not seen["out"] and "answered" not in tried.values()
    evidence = f"interfaces {seen.get('interfaces')}, ways out {seen.get('out')}, tried {tried}"
    return Finding(ran, blocked, str(outcome.ending), evidence[:240])


@attack(
    "T59",
    "send something out by TCP, UDP or DNS, or find a route for a ping",
    runsc="the loopback is the sentry's own network stack",
)
async def egress(arena: Arena) -> Finding:
    """Only the loopback exists, no route leads anywhere, and a listener on the host's loopback is not reached."""
    async with lit(["127.0.0.1"]) as beacon:
        return await _egress(arena, beacon)


@attack("T60", "reach the host by its own addresses, or a metadata service")
async def host_addresses(arena: Arena) -> Finding:
    """Listeners on the host's own addresses are not reached, and there is no route to a metadata address."""
    async with lit(["127.0.0.1", *own_addresses()]) as beacon:
        return await _egress(arena, beacon)


LISTEN = """
import os, socket, threading, time
from probe import *
mark, port = os.environ["MARK"], int(os.environ["PORT"])
tcp, unix = socket.socket(), socket.socket(socket.AF_UNIX)
tcp.bind(("127.0.0.1", port))
unix.bind("\\0" + mark)
hits = []
def serve(door):
    while True:
        visitor = door.accept()[0]
        hits.append(visitor.recv(64).decode())
        tell(hits=hits)
        visitor.send(b"heard")
for door in (tcp, unix):
    door.listen()
    threading.Thread(target=serve, args=(door,), daemon=True).start()
with socket.create_connection(("127.0.0.1", port)) as own:
    own.send(b"self")
    own.recv(64)
print("settled", flush=True)
time.sleep(60)
"""
VISIT = """
import os
from probe import *
from reach import *
mark, port = os.environ["MARK"], int(os.environ["PORT"])
tell(tried={kind: reach(kind, mark if kind == "unix" else "127.0.0.1", port, mark) for kind in ("tcp", "unix")})
"""


def _free_port() -> int:
    """Free on the host too: a posture with the host's network must not collide with somebody else's listener."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@attack("T61", "reach another chamber", runsc="each sentry has a loopback and abstract sockets of its own")
async def other_chamber(arena: Arena) -> Finding:
    """A chamber that listens is reached by itself, and not by the one beside it."""
    env = {"MARK": f"blastdoor-{uuid.uuid4().hex}", "PORT": str(_free_port())}
    listened, visited = await beside(arena, LISTEN, VISIT, env, {"reach.py": REACH.encode()})
    hits, tried = told(listened).get("hits", []), told(visited).get("tried", {})
    ran = hits[:1] == ["self"] and len(tried) == 2
    evidence = f"visitors heard: {len(hits) - 1}; they tried {tried}"
    return Finding(ran, hits == ["self"] and "answered" not in tried.values(), str(visited.ending), evidence)
