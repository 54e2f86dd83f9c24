"""From a repository to a ranked list of what could be searched for: profiled, recorded and asked again in chambers."""

from collections.abc import Callable

from orchestrator.discovery.bench import Bench, Found
from orchestrator.discovery.chambers import Laboratory
from orchestrator.discovery.commands import OtherCommand
from orchestrator.discovery.look_at_node import look_at_node
from orchestrator.discovery.look_at_python import look_at_python
from orchestrator.discovery.node import NodePackage
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.suites import suites_of
from orchestrator.discovery.targets import ranked


async def discover(
    repository: Repository,
    laboratory: Laboratory,
    doing: Callable[[str], None],
    work_s: float = 0.5,
    *,
    package: NodePackage | None = None,
    others: tuple[OtherCommand, ...] = (),
) -> Found:
    """`work_s` is how many seconds of work the questions to one function should be together.

    Raises the sandbox's errors when the engine fails. What the repository does wrong becomes a note.
    """
    bench = Bench(repository, laboratory, doing, work_s)
    for suite in suites_of(repository):
        await look_at_python(bench, suite)
    if package:
        await look_at_node(bench, package)
    for other in others:
        if other.tests:
            await bench.guard(f"{other.language.lower()}-tests", other.tests, 0)
        await bench.time_command(other.command, other.path, other.editable, f"of {other.language} no function is asked")
    bench.found.targets = ranked([*bench.functions.values(), *bench.found.targets])
    return bench.found
