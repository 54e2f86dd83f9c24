"""The adversaries: who tries to get a score without solving anything, in one table.

One row is one adversary: what it does where outputs are judged, what it does where the judge calls, whether `check`
has time for it, and what to change in a judge that it gains from. To add one, add a row. Whether it gained is for the
caller to decide, by the task's own ranking.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from orchestrator.judge import cheats
from orchestrator.judge.cheats import Forge, Outputs, Recording
from orchestrator.judge.guest.blastdoor_twists import FILLS, PICKS, picked, refilled
from orchestrator.judge.tape import Tape

_IDLE = "a candidate that does nothing must get no score: check what it did, and give valid = false where it is nothing"
_CHECK = "the judge takes an answer that solves nothing: check every answer, and give valid = false to a wrong one"
_FINITE = "refuse what is not finite before computing with it: number() of blastdoor_judge does"
_RANGES = "check the range of every number, and set a ceiling on the metric where the best is known"
_TYPES = "check the type of every value: number() of blastdoor_judge refuses what is no number"
_FIXED = "a constant does better than the baseline: the score may not measure what is wanted"
_LENGTH = "check that every item that was asked for is there, once, before you compare: zip() stops at the shorter one"
_COUNT = "divide by the number of items that were asked for, not by the number that came"
_SKIPS = "count every question, answered or not: one that is wrong, missing or an error is no solution, or scores 0"
_WORD = "take nothing from the candidate's own words: work the figure out from gold and outputs"
_IMPORTS = "put no folder of the candidate's on a path, and import nothing from it"
_RUNS = "read outputs as data: never eval, exec or unpickle them"
_PARSE = "refuse what cannot be read whole"
_TWICE = "count what is given twice once"
_OWN_GRADER = "grade with code of the judge's own: never ask the candidate whether its answer is right"
_FRESH = "ask every question once, each drawn from a generator of its own: candidate.time does both"
_SEED = "draw questions from candidate.rng(): they are new in every run, and nobody can learn them by heart"
_LOADING = "give every timed call a question that is new: what is asked for without one can be worked out while loading"
_AHEAD = "time all calls that get the question, or draw it only for the call that is timed"
_VACUOUS = "do not look for words in a text: run it as the trial, and look at what it does"
_WAITS = "a call that takes longer must never make the score better"
_TAKES_OFF = "take nothing off a time but what net, work and time() of blastdoor_relay do: the candidate can stretch it"


@dataclass(frozen=True)
class Play:
    """How a cheat answers calls; the words are those of blastdoor_cheat.py.

    `spare` says which calls the honest candidate answers, `answer` what all others get, made of `value`, `fill`,
    `pick`, `field` or `claims`. `graders`: yes to every function that always said yes. `ahead`: what was asked of one
    function is worked out for all others, too. `loading`: what the baseline was asked is worked out before the first
    call. `fractions`: whole numbers stay as they are. `lingers`: empty calls take longer, once it was called. `burns`:
    other processes of it compute while nobody calls it.
    """

    answer: str = "value"
    value: object = None
    spare: str = "none"
    fill: str = ""
    pick: str = ""
    field: str = ""
    claims: bool = False
    graders: bool = False
    ahead: bool = False
    loading: bool = False
    fractions: bool = False
    lingers: bool = False
    burns: bool = False

    @property
    def is_about_time(self) -> bool:
        """Whether it only does what an honest one does, so that it gains by what is taken off its time, or nothing."""
        return self.lingers or self.burns

    @property
    def needs_honest(self) -> bool:
        return self.spare != "none" or self.answer not in (
            "value",
            "error",
            "question",
            "question with zeros",
            "question picked",
        )


Plays = Mapping[str, Play]
Reckon = Callable[[Tape], Plays]


@dataclass(frozen=True)
class Adversary:
    """`why` is what to change in a judge that it gains from. `forge` makes outputs, `plays` ways to answer, each by
    what tells it from others of the same row.

    Without `proof` a gain may be honest: there are tasks that zeros solve. With `every` one gain may be, too, so that
    all of its ways must. With `tie` it gains where every one of its ways gets the baseline's score: nothing honest does
    that; with `alone`, where one of them does. `idle`: it does no work at all, so what it scores is the floor. `quick`:
    `check` tries it, too.
    """

    name: str
    why: str
    forge: Forge | None = None
    plays: Reckon | None = None
    quick: bool = False
    proof: bool = True
    every: bool = False
    tie: bool = False
    alone: bool = False
    idle: bool = False


@dataclass(frozen=True)
class Oracle:
    """One way of one adversary, ready to be tried. `why` says what is wrong if it wins."""

    name: str
    outputs: Outputs
    why: str
    proof: bool = True
    play: Play | None = None
    row: Adversary | None = field(default=None, compare=False)


def oracles(it: Recording, rows: Sequence[Adversary], most: int | None = None) -> list[Oracle]:
    """All that differ from the baseline and from each other, the plainest first; of each row so many ways at most."""
    seen: list[Outputs] = [dict(it.outputs)]
    kept = []
    for row in rows:
        for word, outputs in list((row.forge(it) if row.forge else {}).items())[:most]:
            if outputs not in seen:
                seen.append(dict(outputs))
                kept.append(Oracle(_name(row, word), outputs, row.why, row.proof, row=row))
    return kept


def players(tape: Tape, rows: Sequence[Adversary], most: int | None = None) -> list[Oracle]:
    """Ways to answer that are not the baseline's own, whatever it is asked."""
    return [
        Oracle(_name(row, word), {}, row.why, row.proof, play, row)
        for row in rows
        for word, play in list((row.plays(tape) if row.plays else {}).items())[:most]
        if not _is_own(play, tape)
    ]


def _name(row: Adversary, word: str) -> str:
    return f"{row.name}: {word}" if word else row.name


def _is_own(play: Play, tape: Tape) -> bool:
    """Whether the baseline itself answers like that."""
    if play.needs_honest or play.graders:
        return False
    if play.answer == "value":
        return tape.always_answers(play.value)
    return play.answer == "question" and tape.always_answers_the_question


def _always(**given: object) -> Reckon:
    play = Play(**given)  # type: ignore[arg-type]  # fields of it, by their names
    return lambda _: {"": play}


def _varied(**given: object) -> Reckon:
    """Where there is more than one question."""
    play = Play(**given)  # type: ignore[arg-type]  # as above
    return lambda tape: {"": play} if tape.questions > 1 else {}


def _says_yes(tape: Tape) -> Plays:
    if not tape.graders or set(tape.names) == set(tape.graders):
        return {}
    # The last is what a judge that looks at the form alone cannot tell from an honest answer.
    filled = {"to zeros": Play("filled", fill="zeros", graders=True)} if _filled("zeros")(tape) else {}
    return {"to the question": Play("question", graders=True), "to nothing": Play(graders=True), **filled}


def _filled(fill: str) -> Reckon:
    def plays(tape: Tape) -> Plays:
        if not tape.is_changed_by(partial(refilled, fill=FILLS[fill])):
            return {}
        made = {"": Play("filled", fill=fill)}
        return made if not tape.has_both else {**made, "fractions only": Play("filled", fill=fill, fractions=True)}

    return plays


def _picked(*picks: str) -> Reckon:
    def plays(tape: Tape) -> Plays:
        apart = [pick for pick in picks if tape.is_changed_by(partial(picked, pick=PICKS[pick]))]
        return {pick if len(picks) > 1 else "": Play("picked", pick=pick) for pick in apart}

    return plays


def _fields(tape: Tape) -> Plays:
    return _each(tape.fields)


def _each(names: Sequence[str]) -> Plays:
    return {f"{name} = {value:g}": Play("field", field=name, value=value) for name in names for value in (0, 1e9, -1e9)}


def _of_another_task(_: Tape) -> Plays:
    return {word: Play(value=value) for word, value in cheats.ANSWERS_OF_OTHER_TASKS.items()}


def _while_loading(tape: Tape) -> Plays:
    """Where something is asked for without a question, so that its answer can be known before."""
    if not tape.asks_without_question or tape.uses_objects:
        return {}
    return {"": Play("remembered", spare="not asked before", loading=True)}


def _constant(name: str, value: object) -> Adversary:
    return Adversary(f"answers {name}", _CHECK, plays=_always(value=value), quick=True, tie=True, idle=True)


def _fill(fill: str, why: str, *, quick: bool = True, proof: bool = True, tie: bool = False) -> Adversary:
    return Adversary(fill, why, cheats.filled(fill), _filled(fill), quick=quick, proof=proof, tie=tie)


def _pick(name: str, why: str, *picks: str, **more: bool) -> Adversary:
    return Adversary(name, why, cheats.picked(*picks), _picked(*picks), **more)


def _sparing(name: str, spare: str, answer: str, why: str = _SKIPS, *, quick: bool = False) -> Adversary:
    return Adversary(name, why, plays=_varied(spare=spare, answer=answer), quick=quick, tie=True)


ADVERSARIES: tuple[Adversary, ...] = (
    # Nothing at all.
    Adversary("no output", _IDLE, cheats.nothing, quick=True, tie=True, idle=True),
    Adversary("empty files", _IDLE, cheats.empty_files, quick=True, tie=True, idle=True),
    Adversary("the input copied", _IDLE, cheats.input_copied, tie=True, idle=True),
    Adversary("the plainest values", _CHECK, cheats.whole_values, tie=True, idle=True),
    Adversary("what another task wants", _CHECK, cheats.of_another_task, tie=True, idle=True),
    _constant("nothing", None),
    _constant("zero", 0),
    _constant("one", 1),
    _constant("true", True),
    _constant("NaN", float("nan")),
    _constant("infinity", float("inf")),
    _constant("huge", 1e308),
    _constant("an empty text", ""),
    _constant("an empty list", []),
    Adversary("answers an empty object", _CHECK, plays=_always(value={}), tie=True, idle=True),
    Adversary("answers what another task wants", _CHECK, plays=_of_another_task, tie=True, idle=True),
    Adversary("answers the question back", _CHECK, plays=_always(answer="question"), quick=True, tie=True, idle=True),
    Adversary(
        "answers the question with zeros", _CHECK, plays=_always(answer="question with zeros"), quick=True, tie=True
    ),
    Adversary(
        "answers the question, reversed", _CHECK, plays=_always(answer="question picked", pick="reversed"), tie=True
    ),
    Adversary("answers an error", _SKIPS, plays=_always(answer="error"), quick=True, tie=True, idle=True),
    # The candidate's own word for a score.
    Adversary("result beside", _WORD, cheats.result_beside, quick=True),
    Adversary("result instead", _WORD, cheats.result_instead, quick=True, tie=True),
    Adversary("score in the output", _WORD, cheats.claims_inside, lambda tape: _claims(tape), quick=True),
    Adversary("one figure alone", _WORD, cheats.one_field_alone, _fields),
    # Of numbers alone it cannot be told whether one is a claim or a coordinate.
    Adversary("one of several numbers", _WORD, plays=lambda tape: _each(tape.places), proof=False),
    Adversary("says yes", _OWN_GRADER, plays=_says_yes, quick=True, tie=True, alone=True),
    # Code where data is wanted.
    Adversary("planted modules", _IMPORTS, cheats.planted_modules, quick=True),
    Adversary("code for data", _RUNS, cheats.code_for_data),
    Adversary("a pickled object", _RUNS, cheats.pickled_object, quick=True, tie=True),
    # Numbers that are none, or none that can be.
    _fill("NaN", _FINITE, tie=True),
    _fill("NaN first, the rest large", _FINITE),
    _fill("NaN twice, the rest large", _FINITE),
    _fill("NaN twice, the rest doubled", _FINITE, quick=False),
    _fill("NaN but the first", _FINITE, quick=False, tie=True),
    _fill("infinity", _FINITE, tie=True),
    _fill("minus infinity", _FINITE, tie=True),
    _fill("huge", _RANGES, tie=True),
    _fill("huge, negative", _RANGES, tie=True),
    _fill("an integer of 401 digits", _RANGES, tie=True),
    _fill("large", _RANGES, proof=False),
    _fill("large, negative", _RANGES, proof=False),
    _fill("tiny", _RANGES, quick=False, proof=False),
    _fill("a thousand times as much", _RANGES, proof=False),
    _fill("the other sign", _RANGES, proof=False),
    _fill("zeros", _FIXED, proof=False),
    _fill("ones", _FIXED, proof=False),
    _fill("texts for numbers", _TYPES, tie=True),
    _fill("infinity as text", _TYPES, quick=False, tie=True),
    _fill("lists for numbers", _TYPES, tie=True),
    _fill("booleans for numbers", _TYPES, proof=False),
    _fill("nothing for numbers", _TYPES, quick=False, tie=True),
    _fill("nothing but the first", _SKIPS, quick=False, tie=True),
    # Too little, too much, the same again.
    _pick("empty lists", _LENGTH, "none", quick=True, tie=True),
    _pick("only one item", _COUNT, "only the first", "only the last", "only the middle", quick=True, tie=True),
    _pick(
        "only the first items", _LENGTH, "only the first", "the first half", "all but the last", every=True, tie=True
    ),
    _pick("half of the items", _COUNT, "the first half", "every second", every=True),
    _pick("one item for all", _LENGTH, "the first for all", "the last for all", tie=True),
    _pick("every row twice", _TWICE, "all twice", quick=True, proof=False),
    _pick("every item ten times", _TWICE, "all ten times", proof=False),
    _pick("items in another order", _LENGTH, "reversed", proof=False),
    Adversary("one file missing", _PARSE, cheats.one_file_missing),
    Adversary("cut in half", _PARSE, cheats.cut_in_half, quick=True, proof=False),
    Adversary("nested deeply", _PARSE, cheats.nested_deeply, quick=True, tie=True),
    Adversary("zero bytes", _PARSE, cheats.zero_bytes, quick=True, tie=True),
    Adversary("every line a comment", _VACUOUS, cheats.comments_only, tie=True),
    # Right now and then.
    _sparing("right once, then nothing", "first", "value", quick=True),
    _sparing("right once, then an error", "first", "error"),
    _sparing("right once, then the same again", "first", "first answer", _CHECK, quick=True),
    _sparing("right every second time", "every second", "value"),
    _sparing("right for half, then an error", "first half", "error"),
    Adversary("the answer before", _CHECK, plays=_varied(answer="answer before"), tie=True),
    # Work that is left out where it is timed.
    Adversary("remembers", _FRESH, plays=_always(answer="remembered", spare="not asked before"), quick=True),
    Adversary(
        "right, but nothing when asked again",
        _FRESH,
        plays=lambda tape: {"": Play(spare="not asked before")} if tape.asks_again else {},
    ),
    Adversary(
        "looks ahead",
        _AHEAD,
        plays=lambda tape: (
            {"": Play("remembered", spare="not asked before", ahead=True)} if len(tape.names) > 1 else {}
        ),
    ),
    Adversary("works while loading", _LOADING, plays=_while_loading),
    # The same work, and what is taken off its time is stretched.
    Adversary("sleeps when nothing is asked", _TAKES_OFF, plays=_always(spare="all", lingers=True)),
    Adversary("burns between calls", _TAKES_OFF, plays=_always(spare="all", burns=True)),
    Adversary("learnt by heart", _SEED, plays=_always(answer="recorded", spare="not recorded")),
    Adversary("slow", _WAITS, plays=_always(spare="all")),
)


def _claims(tape: Tape) -> Plays:
    return {"": Play("claims", claims=True)} if tape.has_objects else {}


def rows_of(*, calls: bool, quick: bool = False) -> list[Adversary]:
    """Those of one way of judging."""
    return [row for row in ADVERSARIES if (row.plays if calls else row.forge) and (row.quick or not quick)]
