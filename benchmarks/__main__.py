"""`python -m benchmarks [NAME…]`: prints a table of figures; exit code 1 when a goal is missed."""

import argparse
import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable

from benchmarks import campaign, endurance, flood, latency, ledger, throughput
from benchmarks.figure import Figure


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "names", nargs="*", help="latency, throughput, flood, endurance, campaign, ledger; all when left out"
    )
    parser.add_argument("--exchanges", type=int, default=10_000, help="how many exchanges endurance makes")
    parser.add_argument("--nodes", type=int, default=5_000, help="how many nodes campaign makes")
    chosen = parser.parse_args()
    known: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
        "latency": latency.measure,
        "throughput": throughput.measure,
        "flood": flood.measure,
        "endurance": lambda: endurance.measure(chosen.exchanges),
        "campaign": lambda: campaign.measure(chosen.nodes),
        "ledger": ledger.measure,
    }
    if unknown := [name for name in chosen.names if name not in known]:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    print(f"{platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}\n")
    print("| figure | measured | goal | |\n|---|---|---|---|")
    missed = False
    for name in chosen.names or known:
        for figure in asyncio.run(_measured(known[name])):
            print(figure.row(), flush=True)
            missed |= figure.met is False
    return int(missed)


async def _measured(measure: Callable[[], Awaitable[list[Figure]]]) -> list[Figure]:
    return await measure()


sys.exit(main())
