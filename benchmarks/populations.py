"""Parents, islands and novelty: what each of them brings, and where it does not."""

from benchmarks import islands, novelty
from benchmarks.figure import Figure


async def measure(seeds: int = 20) -> list[Figure]:
    return [*novelty.measure(seeds), *islands.measure(seeds)]
