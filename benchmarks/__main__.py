"""`python -m benchmarks [NAME…]`: prints a table of figures; exit code 1 when a goal is missed."""

import argparse
import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks import (
    allocation,
    attempts,
    audit,
    campaign,
    candidates,
    certify,
    channels,
    combining,
    cuts,
    durable,
    endurance,
    flood,
    gateway,
    heldout,
    hints,
    importing,
    importing_times,
    lag,
    latency,
    ledger,
    loaded,
    meta,
    meta_families,
    meta_in_flight,
    minimising,
    modal,
    opening,
    operators,
    others,
    packing,
    page,
    plateaus,
    populations,
    pruning,
    relay,
    runtime,
    samplers,
    skypilot,
    stalls,
    starts,
    temperature,
    throughput,
    values,
)
from benchmarks.figure import Figure


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", help="what to measure; all when left out")
    parser.add_argument("--exchanges", type=int, default=10_000, help="how many exchanges endurance makes")
    parser.add_argument("--nodes", type=int, default=5_000, help="how many nodes campaign and opening make")
    parser.add_argument("--seeds", type=int, help="how many seeds, where chance plays; else as many as each needs")
    parser.add_argument("--folder", type=Path, help="a folder of tasks of others, for importing")
    parser.add_argument("--format", choices=sorted(importing.EVALUATORS), default="openevolve", help="of these tasks")
    parser.add_argument("--only", default="*", help="a pattern of the names of these tasks")
    parser.add_argument("--place", action="append", default=[], metavar="WHERE=FOLDER", help="as blastdoor import")
    chosen = parser.parse_args()
    placed = {where: Path(folder) for where, _, folder in (it.partition("=") for it in chosen.place)}
    known: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
        "latency": latency.measure,
        "throughput": throughput.measure,
        "attempts": attempts.measure,
        "runtime": runtime.measure,
        "starts": starts.measure,
        "others": others.measure,
        "cuts": cuts.measure,
        "flood": flood.measure,
        "lag": lag.measure,
        "durable": durable.measure,
        "candidates": candidates.measure,
        "endurance": lambda: endurance.measure(chosen.exchanges),
        "campaign": lambda: campaign.measure(chosen.nodes),
        "opening": lambda: opening.measure(chosen.nodes),
        "relay": relay.measure,
        "values": values.measure,
        "gateway": gateway.measure,
        "certify": lambda: _all(certify.measure(chosen.seeds or 400), loaded.measure()),
        "minimising": lambda: minimising.measure(chosen.seeds or minimising.SEEDS),
        "heldout": lambda: heldout.measure(chosen.seeds or heldout.SEEDS),
        "pruning": pruning.measure,
        "samplers": lambda: samplers.measure(chosen.seeds or 40),
        "plateaus": lambda: plateaus.measure(chosen.seeds or 30),
        "operators": lambda: operators.measure(chosen.seeds or 20),
        "hints": lambda: hints.measure(chosen.seeds or hints.SEEDS),
        "meta_families": lambda: meta_families.measure(chosen.seeds or meta_families.SEEDS),
        "meta_in_flight": lambda: meta_in_flight.measure(chosen.seeds or meta_families.SEEDS),
        "combining": lambda: combining.measure(chosen.seeds or combining.SEEDS),
        "allocation": lambda: allocation.measure(chosen.seeds or allocation.SEEDS),
        "ledger": ledger.measure,
        "stalls": lambda: stalls.measure(chosen.seeds or stalls.STREAMS),
        "modal": modal.measure,
        "skypilot": skypilot.measure,
        "channels": channels.measure,
        "meta": lambda: meta.measure(chosen.seeds or 40),
        "temperature": lambda: temperature.measure(chosen.seeds or temperature.SEEDS),
        "populations": lambda: populations.measure(chosen.seeds or 20),
        "audit": audit.measure,
        "importing": lambda: importing.measure(chosen.folder, chosen.format, chosen.only, placed),
        "importing-times": importing_times.measure,
        "page": page.measure,
        "packing": lambda: packing.measure(chosen.seeds or 20),
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


async def _all(*parts: Awaitable[list[Figure]]) -> list[Figure]:
    return [figure for part in parts for figure in await part]


async def _measured(measure: Callable[[], Awaitable[list[Figure]]]) -> list[Figure]:
    return await measure()


sys.exit(main())
