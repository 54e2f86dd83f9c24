"""`blastdoor ab`: two ways to search, each on the same seeds and the same budget, one campaign after the other."""

import json
import random
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from orchestrator.domain import figures
from orchestrator.domain.ab import Scale
from orchestrator.domain.metric import Ranking
from orchestrator.ledger import CampaignLock
from orchestrator.loop.campaign import Finished
from orchestrator.run_options import OPTIONS, Flags, Scope
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.text import printable
from orchestrator.views.campaign.opening import json_option, print_json, task_argument
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections.ab import AbMaterial, ab_sections, label
from orchestrator.views.campaign.sections.material import typed
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import run_flags, say, site_options, value_of
from orchestrator.views.render.data import record
from orchestrator.views.render.terminal import Terminal
from orchestrator.views.running.session import INTERRUPTED, NoBaseline, Wanted, work
from orchestrator.wiring.ab import (
    SIDES,
    Asked,
    Ended,
    Turn,
    ended_in,
    is_begun,
    read_asked,
    read_comparing,
    write_asked,
)
from orchestrator.wiring.beginning import How
from orchestrator.wiring.planning import Plan, plan_campaign
from orchestrator.wiring.reading import ab_folder
from orchestrator.wiring.resuming import CannotOpen

_PAIRS = 10
# A comparison is of the search alone: nobody can be asked in the middle, and nothing comes after it.
_OFF = {"review": False, "ask": False, "combine": False, "minimise": False}
_OF_THE_SEARCH = {"width", "patience", "rate"}
# The budget is the same for both, and so is the place.
_SHARED = {name for name, it in OPTIONS.items() if it.scope is not Scope.RUN} - _OF_THE_SEARCH - _OFF.keys() | {"seed"}
_OF_A_SIDE = [name for name in OPTIONS if name not in _SHARED and name not in _OFF]
# A flag of that name says both sides here; a side may still have the option.
_OTHERWISE = ("arms",)


@click.command("ab")
@click.option("--arms", metavar="A,B", help='Compare two values of search.meta: short for --a "meta=A" --b "meta=B".')
@click.option("--a", "a", multiple=True, metavar="OPTIONS", help='Options of side a, like "proposer=tpe width=4".')
@click.option("--b", "b", multiple=True, metavar="OPTIONS", help="Options of side b.")
@click.option(
    "--seeds", type=click.IntRange(1, 1000), help=f"Number of pairs, each with its own seed; {_PAIRS} if unset."
)
@click.option("--target", type=float, help="Value to count attempts to; defaults to the task's own target.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to keep it; defaults to .blastdoor/ab in TASK.")
@run_flags(Scope.RUN, Scope.CAP, but=(*_OFF, *_OTHERWISE))
@site_options()
@click.option("--dry-run", is_flag=True, help="Show what would run and what it could cost; run nothing.")
@json_option
@task_argument
@click.pass_obj
def command(settings: Settings, /, task: Path, **given: Any) -> int:
    """Compare two ways to search on TASK: campaigns in pairs, with the same seed and the same budget.

    The two campaigns of a pair run one after the other, in an order that a coin decides beforehand. Each has its own
    folder and ledger. The same command goes on with a comparison that was stopped; nothing that ended runs again.

    Exit code 0 when all pairs are complete, whatever the answer, 2 when the task or an option is at fault, 3 when the
    engine fails, 130 when a signal ended it.
    """
    folder = given["folder"] or ab_folder(task)
    asked = _asked(task, folder, given)
    plans = {side: plan_campaign(task, How.START, _flags(asked, side, asked.seeds[0]), settings) for side in SIDES}
    _refuse_changed(asked, plans, task)
    if not asked.values:
        asked = asked.model_copy(update={"values": {side: _values(plans[side]) for side in SIDES}})
    for warning in load_task(task).warnings:
        say(f"warning: {warning}")
    _say_total(asked, plans)
    if given["dry_run"]:
        return Exit.OK
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with CampaignLock(folder / "lock"):
        write_asked(folder, asked)
        code = _work(task, folder, asked, settings, quiet=given["as_json"])
    show_comparison(AbMaterial(read_comparing(folder, settings), folder, _again(task, folder)), given["as_json"])
    return code


def show_comparison(material: AbMaterial, as_json: bool) -> None:
    if as_json:
        print_json(record(ab_sections(material)))
        return
    screen = open_screen()
    screen.lines(Terminal(screen.width, screen.unicode).whole(ab_sections(material)))


def _asked(task: Path, folder: Path, given: Mapping[str, Any]) -> Asked:
    """What is on record, or what is asked for now. Raises UsageError for both at once that differ."""
    before = read_asked(folder)
    sides = _sides(given)
    shared = [name for name in OPTIONS if name not in (*_OTHERWISE, "seed")]
    both = {name: given[name] for name in shared if given.get(name) is not None}
    said_anything = sides or both or any(given[name] is not None for name in ("seeds", "target", "seed"))
    if before and not said_anything:
        return before
    if not sides:
        if before:
            raise click.UsageError(f"{printable(str(folder))} holds a comparison; {_either(task, folder)}")
        raise click.UsageError('say what to compare: --arms A,B, or --a "OPTIONS" --b "OPTIONS"')
    first = given["seed"] or 0
    seeds = tuple(range(first, first + (given["seeds"] or _PAIRS)))
    loaded = load_task(task)
    ranking = Ranking([spec.metric() for spec in loaded.metrics], loaded.ranking.rule)
    new = Asked(
        task=loaded.name,
        options=both,
        sides=sides,
        seeds=seeds,
        target=given["target"],
        scale=Scale.of(ranking),
        values={},
        digests=dict(snapshot(loaded, task).digests),
        first=tuple(random.SystemRandom().choice(SIDES) for _ in seeds),
    )
    if before and before.said != new.said:
        held = f"a ({label(before.sides['a'])}) with b ({label(before.sides['b'])}) on {len(before.seeds)} seeds"
        raise click.UsageError(
            f"{printable(str(folder))} compares {printable(held)}, begun with other options; {_either(task, folder)}"
        )
    return before or new


def _again(task: Path, folder: Path) -> str:
    """The command that goes on with it."""
    return typed(task, "ab", *([] if folder == ab_folder(task) else ["--folder", str(folder)]))


def _either(task: Path, folder: Path) -> str:
    return f"go on with {_again(task, folder)}, or name another --folder"


def _sides(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of each side; nothing where none were said."""
    if given["arms"] is None:
        if not given["a"] and not given["b"]:
            return {}
        if not (given["a"] and given["b"]):
            raise click.UsageError('a comparison has two sides: give both --a and --b ("" for a task as it is)')
        return {side: _set(given[side], side) for side in SIDES}
    if given["a"] or given["b"]:
        raise click.UsageError("--arms says both sides already; leave out --a and --b, or write them without --arms")
    arms = [it.strip() for it in given["arms"].split(",")]
    if len(arms) != 2 or not all(arms):
        raise click.UsageError(f"--arms takes two names with a comma between them, not {given['arms']!r}")
    return {side: _set([f"meta={arm}"], side) for side, arm in zip(SIDES, arms, strict=True)}


def _set(texts: Sequence[str], side: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in " ".join(texts).split():
        name, equals, text = word.partition("=")
        name = name.removeprefix("--").replace("-", "_")
        if not equals:
            raise click.UsageError(f"--{side}: {printable(word)} has no value; write it like proposer=tpe")
        if name not in OPTIONS:
            near = get_close_matches(name, OPTIONS, n=1)
            meant = f"did you mean {near[0]}?" if near else f"options are {', '.join(_OF_A_SIDE)}"
            raise click.UsageError(f"--{side}: there is no option {printable(name)}; {meant}")
        if name in _OFF:
            raise click.UsageError(
                f"--{side}: {name} is off in a comparison, which is of the search alone; leave it out"
            )
        if name in _SHARED:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{side}: {name} cannot differ between the sides; say --{flag} for both")
        found[name] = value_of(name, text, f"--{side}")
    return found


def _flags(asked: Asked, side: str, seed: int, *, begun: bool = False) -> Flags:
    """Of one that is begun, its caps are said again: somebody may have gone on with it by hand, with others."""
    said = {**asked.options, **asked.sides[side], **_OFF, "seed": seed}
    return Flags(**{name: value for name, value in said.items() if not begun or OPTIONS[name].scope is Scope.CAP})


def _values(plan: Plan) -> dict[str, Any]:
    """As they are read back."""
    found: dict[str, Any] = json.loads(json.dumps({**plan.options.values, "seed": None}))
    return found


def _refuse_changed(asked: Asked, plans: Mapping[str, Plan], task: Path) -> None:
    """Settings, the task file and its files must not change between two campaigns of a comparison."""
    if not asked.values:
        return
    changed = [
        f"{name} of {side} is {now}, not {asked.values[side].get(name)}"
        for side in SIDES
        for name, now in _values(plans[side]).items()
        if name in asked.values[side] and now != asked.values[side][name]
    ]
    digests = snapshot(load_task(task), task).digests
    changed += [f"its {name} changed" for name, digest in digests.items() if digest != asked.digests.get(name)]
    if changed:
        raise CannotOpen(
            printable(f"not what the comparison was begun with: {changed[0]}; put it back, or name another --folder")
        )


def _say_total(asked: Asked, plans: Mapping[str, Plan]) -> None:
    left = sum(turn.name not in asked.ended for turn in asked.turns())
    campaigns = figures.plural(left, "campaign")
    attempts = asked.attempts or 0
    say(
        f"a ({label(asked.sides['a'])}) against b ({label(asked.sides['b'])}): {campaigns} of at most"
        f" {figures.plural(attempts, 'attempt')} each, {left * attempts:,} in all, {_worst(asked, plans)}"
    )


def _worst(asked: Asked, plans: Mapping[str, Plan]) -> str:
    """Dollars of what is left to run: never more than the caps of the campaigns."""
    total = 0.0
    for turn in asked.turns():
        plan, cap = plans[turn.side], plans[turn.side].options["usd"]
        if turn.name in asked.ended:
            continue
        if plan.total_usd is None and cap is None:
            return "at a price that is not known yet; --usd caps each campaign"
        total += min(it for it in (plan.total_usd, cap) if it is not None)
    return f"${total:,.2f} at worst"


def _work(task: Path, folder: Path, asked: Asked, settings: Settings, *, quiet: bool) -> int:
    for turn in asked.turns():
        refuse_hopeless(asked)
        if turn.name in asked.ended:
            continue
        say(f"pair {turn.pair} of {len(asked.seeds)}, {turn.side} ({label(asked.sides[turn.side])}), seed {turn.seed}")
        ended = _run_one(task, folder, asked, turn, settings, quiet)
        if ended is None:
            return Exit.INTERRUPTED
        asked = asked.with_ended(turn.name, ended)
        write_asked(folder, asked)
    refuse_hopeless(asked)
    return Exit.OK


def _run_one(task: Path, folder: Path, asked: Asked, turn: Turn, settings: Settings, quiet: bool) -> Ended | None:
    """From where it was left. None where a signal ended it."""
    begun = is_begun(folder / turn.name, settings)
    wanted = Wanted(
        task=task,
        how=How.RESUME if begun else How.START,
        flags=_flags(asked, turn.side, turn.seed, begun=begun),
        settings=settings,
        quiet=quiet or not open_screen(stderr=True).console.is_terminal,
        folder=folder / turn.name,
        brief=True,
        goes_on=_again(task, folder),
    )
    try:
        finished = run_in_loop(work(wanted))
    except NoBaseline as error:
        say(f"  failed: {error}")
        return Ended(why=str(error), failed=True)
    if finished.reason == INTERRUPTED:
        return None
    say(f"  {_told(finished)}")
    return ended_in(folder / turn.name, finished.reason, settings, gave_up=finished.gave_up)


def _told(finished: Finished) -> str:
    return f"{figures.headline(finished.best) or 'no score'}; {finished.reason}"


def refuse_hopeless(asked: Asked) -> None:
    """A first pair of which neither side has a baseline: so it will be with all others."""
    first = [asked.ended.get(turn.name) for turn in asked.turns() if turn.pair == 1]
    failed = [it.why for it in first if it and it.failed]
    if len(failed) == len(SIDES):
        raise CannotOpen(f"neither side came to a score: {failed[0]}; mend the task, and name another --folder")
