"""The state as its rows tell it: all of them at once, or each when it is asked for."""

import msgspec
import pytest
from pydantic import BaseModel, ValidationError

from orchestrator.domain.lines import DraftLine, LateRecords, LikenessLine, Line, NodeLine, SpentLine, TrialLine
from orchestrator.domain.records import Campaign, Draft, LikenessRecord, Node, Phase, Purpose, Role, Spent, Trial
from orchestrator.domain.state import State
from orchestrator.views.page.board_line import BoardLine

RECORDS = {
    ("campaign", "campaign"): Campaign(id="c", name="flat", version="1"),
    ("node", "1"): Node(id="1", parent=None, role=Role.BASELINE, number=1, drafts=1, trials=2),
    ("draft", "1#1"): Draft(node="1", number=1, operator="random", description="x=1"),
    ("trial", "1-1"): Trial(id="1-1", node="1", purpose=Purpose.SUBMIT, draft=1, started_at="t"),
    ("trial", "1-2"): Trial(id="1-2", node="1", purpose=Purpose.REPLAY, draft=1, started_at="t"),
}
LINES: dict[str, tuple[type[BaseModel], type[Line]]] = {
    "node": (Node, NodeLine),
    "draft": (Draft, DraftLine),
    "trial": (Trial, TrialLine),
    "likeness": (LikenessRecord, LikenessLine),
    "spent": (Spent, SpentLine),
    "board": (Node, BoardLine),
}
# As earlier versions wrote them, with every field; and as they are written.
ROWS = {key: record.model_dump_json() for key, record in RECORDS.items()}
SHORT = {key: record.model_dump_json(exclude_defaults=True) for key, record in RECORDS.items()}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("rows", [ROWS, SHORT], ids=["long", "short"])
def test_rows_give_their_records_back(rows: dict[tuple[str, str], str], at_once: bool) -> None:
    """Whenever they are read, records are the same, in the same order, and can be changed, added and dropped."""
    state = State.from_rows(rows, at_once=at_once)
    assert [record.id for record in state.node_lines()] == ["1"]
    assert [record.id for record in state.trial_lines()] == ["1-1", "1-2"]
    assert {key: state.row(key) for key in ROWS} == SHORT
    assert list(state.lines_of_now()) == list(RECORDS.values())
    assert [trial.purpose for trial in state.trials_of("1")] == [Purpose.SUBMIT, Purpose.REPLAY]
    assert state.draft("1#2") is None
    assert "1-3" not in state.trials
    state.set_trial("1-2", let_go=True)
    state.drop("trial", "1-1")
    state.new("trial", "1-3", RECORDS["trial", "1-1"])
    assert {name: trial.let_go for name, trial in state.trials.items()} == {"1-2": True, "1-3": False}
    assert list(state.copy().lines_of_now()) == list(state.lines_of_now())


def test_what_cannot_be_read() -> None:
    """One who works on a campaign is stopped by a trial that cannot be read; one who looks sees all but that trial."""
    rows = ROWS | {("trial", "1-2"): '{"id": "1-2"}'}
    with pytest.raises(ValidationError):
        State.from_rows(rows)
    state = State.from_rows(rows, at_once=False)
    assert state.trials["1-1"].node == "1"
    with pytest.raises(ValidationError):
        list(state.trials_of("1"))
    with pytest.raises(ValidationError):
        state.trial_lines()


@pytest.mark.parametrize("kind", LINES)
def test_lines_say_what_their_records_say(kind: str) -> None:
    """Every field of a line is one of its record, under the same name, with the same default; what a record must have
    a line must have, so that a row that is no record is found in either way.
    """
    record, line = LINES[kind]
    fields = msgspec.structs.fields(line)
    for field in fields:
        known = record.model_fields[field.name]
        assert field.required == known.is_required(), field.name
        assert field.required or _plain(_default(field)) == _plain(known.get_default(call_default_factory=True)), field
    required = {name for name, field in record.model_fields.items() if field.is_required()}
    assert kind == "board" or required <= {field.name for field in fields}


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default


def _plain(value: object) -> object:
    return msgspec.to_builtins(value, enc_hook=lambda record: record.model_dump())


def test_a_row_that_no_line_is_made_of_is_read_as_the_record() -> None:
    """What only the record takes, such as a number in quotes, stays readable."""
    odd = ROWS["node", "1"].replace('"trials":2', '"trials":"2"')
    assert odd != ROWS["node", "1"]
    state = State.from_rows({**ROWS, ("node", "1"): odd}, at_once=False)
    (node,) = state.node_lines()
    assert isinstance(node, Node)
    assert node.trials == 2


def test_lines_follow_what_is_written() -> None:
    """A line is of the row until its record is asked for or changed, then it is the record itself."""
    state = State.from_rows(ROWS, at_once=False)
    (line,) = state.node_lines()
    assert isinstance(line, NodeLine)
    assert (line.opened_place, line.ended_place) == (state.nodes["1"].opened_place, state.nodes["1"].ended_place)
    state.set_trial("1-1", let_go=True)
    state.new("trial", "1-3", RECORDS["trial", "1-2"])
    assert [trial.let_go for trial in state.trial_lines()] == [True, False, False]
    taken = state.lines_of_now()
    state.set_node("1", kept=True)
    state.drop("trial", "1-3")
    assert [it.kept for it in taken if isinstance(it, Node | NodeLine)] == [False]
    assert [it.kept for it in state.node_lines()] == [True]
    state.forget_lines()
    assert [type(it) for it in state.trial_lines()] == [Trial, TrialLine]


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_at_work_is_known(at_once: bool) -> None:
    """From the rows at first, then from what is written."""
    state = State.from_rows(ROWS, at_once=at_once)
    assert (state.trials_at_work, state.asking) == ({"1-1", "1-2"}, set())
    state.set_trial("1-1", ended=True)
    state.drop("trial", "1-2")
    state.new("trial", "1-3", RECORDS["trial", "1-2"])
    state.set_node("1", asking=1)
    assert (state.trials_at_work, state.asking) == ({"1-3"}, {"1"})
    state.set_trial("1-1", judging="1-1/judge")
    state.set_node("1", asking=None, phase=Phase.ENDED)
    assert (state.trials_at_work, state.asking) == ({"1-1", "1-3"}, set())
    asked = state.nodes["1"].model_copy(update={"asking": 2})
    assert State.from_rows({**ROWS, ("node", "1"): asked.model_dump_json()}, at_once=at_once).asking == {"1"}


def test_a_record_that_is_written_while_another_thread_reads_it_stays() -> None:
    """What another thread made of the row that was there before does not take its place."""

    class Slow(Trial, frozen=True):
        @classmethod
        def model_validate_json(cls, *_: object, **__: object) -> Trial:  # type: ignore[override]  # for one row
            trials["1-1"] = new
            return old

    old = Trial.model_validate_json(ROWS["trial", "1-1"])
    new = old.model_copy(update={"ended": True})
    trials: LateRecords[Trial, TrialLine] = LateRecords("trial", Slow, TrialLine, {"1-1": ROWS["trial", "1-1"]})
    assert trials["1-1"] is old
    assert trials["1-1"] is new


def test_fields_are_known() -> None:
    """A misspelt or mistyped field of a record is an error of types, found by mypy; a misspelt one is refused, too."""
    state = State.from_rows(ROWS)
    state.set_node("1", promotion_asked="yes")  # type: ignore[arg-type]  # what mypy must find: it is a bool
    with pytest.raises(TypeError, match="a record of a node has no promotin_asked"):
        state.set_node("1", promotin_asked=True)  # type: ignore[call-arg]  # what mypy must find: a letter is missing
    node = state.nodes["1"]
    node.model_copy(update={"promotin_asked": True})  # type: ignore[call-arg]  # the same
    node.model_copy(update={"drafts": "2"})  # type: ignore[arg-type]  # what mypy must find: it is an int


ROW_OF_A_NODE = (
    '{"id":"1.2","parent":"1","role":"search","number":1,"branch":0,"step":0,"phase":"open","take":1,"stalls":0,'
    '"not_before":"","drafts":0,"injection":null,"island":0,"migrated":[],"promoted":null,"commit":null,"diff":null,'
    '"size":null,"size_bytes":null,"operator":"","description":"","params":null,"drawn":null,"trials":0,'
    '"submitted":null,"verdict":null,"verdicts":{},"guards":[],"guarding":null,"guarding_since":"","guarded":{},'
    '"certification":null,"references":{},"challenged":{},"measured":[],"asking":null,"asking_since":"","heldout":{},'
    '"agent":null,"agent_since":"","agent_log":null,'
    '"tokens":{"input":0,"output":0,"cache_read":0,"cache_write":0},"paid":{},"finding":null,"playbook":null,'
    '"promotion":null,"promotion_asked":false,"promotion_since":"","promotion_why":"","minimal":null,"ending":null,'
    '"kept":false,"why":"","stage":null,"undecided":false,'
    '"spent":{"microdollars":0,"milliseconds":0,"tokens":0},"booked":{"microdollars":0,"milliseconds":0,"tokens":0},'
    '"cost":null,"opened_at":"","opened_order":0,"ended_at":"","ended_order":0,"ended_trials":0}'
)


def test_the_row_of_a_node_is_flat() -> None:
    """A node is made of parts, and its row is what it was before there were parts, byte by byte."""
    node = Node(id="1.2", parent="1", role=Role.SEARCH, number=1)
    assert node.model_dump_json() == ROW_OF_A_NODE
    assert Node.model_validate_json(ROW_OF_A_NODE) == node


@pytest.mark.parametrize(
    ("mine", "its", "smaller"),
    [
        ((1, 20), (3, 60), True),
        ((3, 60), (1, 20), False),
        ((3, 60), (3, 60), False),
        ((3, 59), (3, 60), True),
        ((1, 200_000), (3, 60), False),
        ((3, 60), (1, 200_000), False),
        ((2, None), (3, 60), True),
        ((3, None), (2, 60), False),
        ((2, 20), (3, None), True),
        ((None, None), (3, 60), False),
    ],
)
def test_smaller(mine: tuple[int | None, int | None], its: tuple[int | None, int | None], smaller: bool) -> None:
    """Less of one measure and no more of the other; a ledger that knows lines only is compared by lines."""
    one, other = (
        Node(id="1.1", parent="1", role=Role.SEARCH, number=1, size=size, size_bytes=size_bytes)
        for size, size_bytes in (mine, its)
    )
    assert one.is_smaller_change_than(other) is smaller
