"""More kinds of values: each arrives as what it was, no class and no code ever crosses, and errors are made anew."""

import array
import importlib
import itertools
import random
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.orchestrator.judge.evaluators import Channel
from tests.orchestrator.judge.guests import fresh_guests

NAMES = (
    *("blastdoor_relay", "blastdoor_candidate", "blastdoor_kinds"),
    *("blastdoor_frames", "blastdoor_values", "blastdoor_judge"),
)


@pytest.fixture(scope="module")
def guest() -> Iterator[SimpleNamespace]:
    """The modules as a chamber has them, beside each other."""
    with fresh_guests():
        yield SimpleNamespace(**{name.removeprefix("blastdoor_"): importlib.import_module(name) for name in NAMES})


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8),
)
keys = st.recursive(
    scalars, lambda it: st.one_of(st.lists(it, max_size=3).map(tuple), st.frozensets(it, max_size=3)), max_leaves=6
)
exact = st.recursive(
    st.one_of(scalars, st.sets(keys, max_size=3), st.frozensets(keys, max_size=3)),
    lambda it: st.one_of(
        st.lists(it, max_size=4), st.lists(it, max_size=4).map(tuple), st.dictionaries(keys, it, max_size=4)
    ),
    max_leaves=12,
)


def same(one: Any, two: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return (
            list(map(type, one)) == list(map(type, two))
            and list(one) == list(two)
            and same([*one.values()], [*two.values()])
        )
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, set | frozenset):
        return one == two and {(type(it), it) for it in one} == {(type(it), it) for it in two}
    return bool(one == two)


@given(value=exact)
def test_back_and_forth(guest: SimpleNamespace, value: Any) -> None:
    """A value is the same afterwards, types included."""
    assert same(guest.kinds.decode_exact(guest.kinds.encode_exact(value)), value)


@given(
    floats=st.lists(st.floats(), min_size=10, max_size=40), odd=st.sampled_from([None, 1, True, "x", numpy.float64(1)])
)
def test_many_floats(guest: SimpleNamespace, floats: list[float], odd: Any) -> None:
    """A list of floats is packed at once, into the same bytes as one by one, and nothing else passes for one."""
    values = guest.values
    one_by_one = b"l" + struct.pack("<I", len(floats)) + b"".join(b"f" + struct.pack("<d", it) for it in floats)
    assert values.encode(floats) == one_by_one
    assert list(map(repr, values.decode(one_by_one))) == list(map(repr, floats))
    mixed = guest.kinds.decode_exact(guest.kinds.encode_exact([*floats, odd]))
    assert type(mixed[-1]) is type(odd)
    assert list(map(repr, mixed)) == list(map(repr, [*floats, odd]))


@pytest.mark.parametrize("odd", [None, 1.0, True, 2**63, "x"])
def test_many_whole_numbers(guest: SimpleNamespace, odd: Any) -> None:
    """So is a list of whole numbers unpacked, and nothing else passes for one."""
    numbers = [-(2**63), -1, 0, 2**63 - 1, *range(40)]
    for values in (numbers, [*numbers, odd], [odd, *numbers], [numbers, odd]):
        assert repr(guest.kinds.decode_exact(guest.kinds.encode_exact(values))) == repr(values)
    with pytest.raises(guest.values.Malformed, match="it ends early"):
        guest.values.decode(guest.values.encode(numbers)[:-1])


@pytest.mark.parametrize("dtype", ["b1", "i1", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_numbers_of_numpy(guest: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """They stay what they are where numpy is there, and are plain numbers where it is not."""
    one = numpy.ones(1, dtype=dtype)[0]
    sent = guest.kinds.encode_exact([one])
    [found] = guest.kinds.decode_exact(sent)
    assert type(found) is type(one)
    assert found == one
    monkeypatch.setitem(guest.values.modules_found, "numpy", None)
    [plain] = guest.kinds.decode_exact(sent)
    assert type(plain) in (bool, int, float, complex)
    assert plain == one


class Tensor:
    """As other libraries have them: numbers by a protocol of numpy's."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        del dtype, copy
        return numpy.arange(4.0).reshape(2, 2)


class Bad:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("not now")


@pytest.mark.parametrize("value", [Tensor(), memoryview(array.array("d", [0, 1])), bytearray(b"ab")])
def test_arrays_of_other_libraries(guest: SimpleNamespace, value: Any) -> None:
    """On the candidate's side, what offers its numbers is sent as an array; on the judge's side it is not asked."""
    found = guest.kinds.decode_exact(guest.kinds.encode_exact(value, loose=True))
    assert type(found) is (bytes if isinstance(value, bytearray) else numpy.ndarray)
    if not isinstance(value, bytearray):
        assert numpy.array_equal(found, numpy.asarray(value))
        with pytest.raises(guest.values.NotPlain):
            guest.kinds.encode_exact(value)


class Point(NamedTuple):
    x: int


def counting() -> Iterator[int]:
    yield from range(3)


class Drawing:
    """An iterator of a class of its own."""

    left = 1

    def __iter__(self) -> "Drawing":
        return self

    def __next__(self) -> int:
        if not self.left:
            raise StopIteration
        self.left = 0
        return 5


# What a function gives, what it arrives as where the judge only looks at values, and as what an iterator does.
NEARLY: list[tuple[Any, Any, type]] = [
    (Point(1), (1,), tuple),
    ([Point(2)], [(2,)], list),
    ({Point(3): 1}, {(3,): 1}, dict),
    (OrderedDict(a=1), {"a": 1}, dict),
    (Counter("aab"), {"a": 2, "b": 1}, dict),
    (defaultdict(list, {1: [2]}), {1: [2]}, dict),
    (deque([1, 2]), [1, 2], list),
    (iter({4}), [4], type(iter([]))),
    (Drawing(), [5], type(iter([]))),
]


@pytest.mark.parametrize(("value", "wanted", "kind"), NEARLY, ids=lambda it: type(it).__name__)
def test_what_is_nearly_plain(guest: SimpleNamespace, value: Any, wanted: Any, kind: type) -> None:
    """On the candidate's side it is sent as what comes closest, of an exact type; a judge sends no such thing."""
    with pytest.raises(guest.values.NotPlain):
        guest.kinds.encode_exact(value)
    found = guest.kinds.decode_exact(guest.kinds.encode_exact(value, loose=True))
    assert type(found) is kind
    assert same(list(found) if isinstance(found, Iterator) else found, wanted)


GIVERS: dict[str, Callable[[], Any]] = {
    "a generator": counting, "a map": lambda: map(abs, [0, -1, 2]), "an iterator": lambda: iter([0, 1, 2])
}  # fmt: skip


@pytest.mark.parametrize("what", GIVERS)
def test_what_gives_values_once(guest: SimpleNamespace, what: str) -> None:
    """Iterators of Python's own arrive as iterators, from either side, where that is wanted, and can be sent on. A look
    at one does not take what it gives. A range and parts of a dict arrive as lists.
    """
    for how in ({"given": True}, {"loose": True}):
        found = guest.kinds.decode_exact(guest.kinds.encode_exact(GIVERS[what](), **how))
        assert type(found) is type(iter([]))
        assert next(found) == 0
        again = guest.kinds.decode_exact(guest.kinds.encode_exact(found, given=True))
        assert (list(again), list(again), list(found)) == ([1, 2], [], [])
        rows = [range(3), {"a": 1}.keys(), {"a": 1}.values(), {"a": 1}.items()]
        rows = [guest.kinds.decode_exact(guest.kinds.encode_exact(it, **how)) for it in rows]
        assert same(rows, [[0, 1, 2], ["a"], [1], [("a", 1)]])
    looked_at = GIVERS[what]()
    with pytest.raises(guest.values.NotPlain):
        guest.kinds.encode_exact([looked_at])
    assert list(looked_at) == [0, 1, 2]


def test_an_iterator_without_an_end(guest: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused once it has given more than a value may hold."""
    monkeypatch.setattr(guest.values, "MAX_ITEMS", 1_000)
    with pytest.raises(guest.values.NotPlain, match=r"itertools\.count that gives more than"):
        guest.kinds.encode_exact(itertools.count(), loose=True)


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value",
    [
        *(Text("x"), {Text("x"): 1}, {(1, Text("x"))}, {frozenset([Text("x")]): 1}, type("Row", (tuple,), {})([1])),
        *(type("Table", (dict,), {})(a=1), type("Own", (OrderedDict,), {})(a=1), numpy.datetime64("2020-01-01")),
        *(numpy.str_("x"), Bad(), object(), int, lambda: 1, {"\ud800"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_t25_t26_not_plain(guest: SimpleNamespace, value: Any) -> None:
    """Exact types only: no subclass, no class, no function and no object with a mind of its own."""
    with pytest.raises(guest.values.NotPlain):
        guest.kinds.encode_exact(value, loose=True)


def counted(number: int) -> bytes:
    return struct.pack("<I", number)


def whole(number: int) -> bytes:
    return b"i" + struct.pack("<q", number)


FLOOD = (
    b"S"
    + counted(64)
    + b"".join(
        b"I" + counted(40) + (1 + number * ((1 << 61) - 1) * 2**70).to_bytes(40, "little") for number in range(64)
    )
)
MALFORMED = {
    "a list in a set": b"S" + counted(1) + b"l" + counted(0),
    "a dict in a set": b"S" + counted(1) + b"d" + counted(0),
    "a set in a set": b"Z" + counted(1) + b"S" + counted(0),
    "a list as a key": b"m" + counted(1) + b"l" + counted(0) + b"N",
    "an array as a key": b"m" + counted(1) + b"a\x02u1\0x" + b"N",
    "a member twice": b"S" + counted(2) + b"TT",
    "1 and True": b"m" + counted(2) + b"TN" + whole(1) + b"N",
    "a set that ends early": b"S" + counted(2) + b"N",
    "half a complex": b"c" + bytes(15),
    "a number of objects": b"n\x01O" + bytes(8),
    "a third truth value": b"n\x02b1\2",
    "an object": b"h\x03Foo" + bytes(8),
    "deep": (b"t" + counted(1)) * 40 + b"N",
    "keys of one hash": FLOOD,
    "a named tuple": b"u\x05Point" + counted(1) + b"N",
    "an iterator in a set": b"S" + counted(1) + b"g" + counted(0),
    "an iterator that ends early": b"g" + counted(2) + b"N",
    "a pickle": b"cbuiltins\neval\n.",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(guest: SimpleNamespace, name: str) -> None:
    """One typed refusal; members that all have one hash are refused before they take their time."""
    with pytest.raises(guest.values.Malformed):
        guest.kinds.decode_exact(MALFORMED[name])


def test_only_where_it_was_asked_for(guest: SimpleNamespace) -> None:
    """A judge that did not ask for exact kinds gets none of them, whatever the candidate sends."""
    for value in ((1, 2), {1}, 1j, {1: 2}, numpy.float32(1)):
        with pytest.raises(guest.values.Malformed):
            guest.values.decode(guest.kinds.encode_exact(value))


def test_random_bytes(guest: SimpleNamespace) -> None:
    """Whatever the bytes are: a value of these types or Malformed, never anything else."""
    rng = random.Random(4)
    values = [
        (1, 2.5, {3, "x"}),
        {(1, b"y"): 1j, None: frozenset([True])},
        [numpy.float32(1), numpy.arange(3)],
        [0.5] * 20,
        [iter([1, (2, "x")])],
    ]
    classes = guest.kinds.tuple_classes({"Route": ["length", "stops"]})
    named = {classes["Route"](1, "x"): [classes["Route"](2.5, iter([classes["Route"](3, ())]))]}
    seeds = [
        guest.kinds.encode_exact(it, lambda part: guest.kinds.named_of(part, classes), given=True)
        for it in [*values, named]
    ]
    decoded = 0

    def found(it: Any) -> Any:
        return it.made(classes) if isinstance(it, guest.kinds.Named) else it

    for number in range(3_000):
        data = bytearray(rng.choice(seeds) if number % 2 else rng.randbytes(rng.randrange(40)))
        for _ in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = (
                    rng.choice(b"NTFifsbldatSZcnmhug\0\1") if rng.random() < 0.5 else rng.randrange(256)
                )
        try:
            value = guest.kinds.decode_exact(data, found)
        except guest.values.Malformed:
            continue
        decoded += 1
        assert is_plain(value, classes["Route"], guest.kinds.Remote)
    assert decoded > 100


def is_plain(value: Any, *known: type) -> bool:
    if type(value) is dict:
        return all(is_plain(it, *known) for pair in value.items() for it in pair)
    if type(value) in (list, tuple, set, frozenset, type(iter([])), *known):
        return all(is_plain(it, *known) for it in value)
    return type(value) in (type(None), bool, int, float, complex, str, bytes, numpy.ndarray) or isinstance(
        value, numpy.generic
    )


class Solver:
    """A candidate's class."""

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate
        self._secret = 7

    def solve(self, x: Any, *, twice: bool = False) -> Any:
        return (x, twice, self.rate)

    def twin(self) -> "Solver":
        return Solver(2 * self.rate)

    def is_solution(self, other: "Solver") -> bool:
        return other is self


class Other:
    """One that the judge did not name."""


class OwnError(KeyError):
    """Known to the candidate alone."""


def fails(kind: str) -> None:
    errors: dict[str, BaseException] = {
        "own": OwnError("k"),
        "exit": SystemExit(3),
        "stop": StopIteration(1),
        "unicode": UnicodeDecodeError("utf-8", b"", 0, 1, "x"),
        "zero": ZeroDivisionError("no"),
    }
    raise errors[kind]


def echo(*arguments: Any, **keywords: Any) -> Any:
    return arguments, keywords


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "echo": echo, "fails": fails, "Solver": Solver, "other": Other, "many": lambda: [Solver() for _ in range(10_001)],
}  # fmt: skip


class Forged(Channel):
    """A candidate whose answers are all these bytes."""

    def __init__(self, answer: bytes) -> None:
        super().__init__({})
        self.answer = answer

    def ask(self, request: bytes) -> bytes:
        return getattr(self, "answer", None) or super().ask(request)


@pytest.fixture
def meet(guest: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """The judge's module and the candidate's, without chambers between them."""
    monkeypatch.setenv("BLASTDOOR_SEED", "7")
    for name, place in {"RESULT_PATH": "result.json", "TRACES_DIR": "traces", "METRICS_PATH": "m.csv"}.items():
        monkeypatch.setenv(f"BLASTDOOR_{name}", str(tmp_path / place))
    opened: list[Channel] = []

    def met(answer: bytes = b"", **options: Any) -> Any:
        opened.append(Forged(answer) if answer else Channel(FUNCTIONS))
        monkeypatch.setattr(guest.relay, "Frames", lambda: opened[-1])
        return guest.relay.Candidate(**options)

    yield met
    for channel in opened:
        channel.close()


def test_keywords(meet: Callable[..., Any]) -> None:
    """They cross in any case; what else is exact only where the judge says so."""
    assert meet().call("echo", (1, 2), key=(3,)).value == [[[1, 2]], {"key": [3]}]
    assert meet(exact=True).call("echo", (1, 2), key={3}).value == (((1, 2),), {"key": {3}})
    assert meet(exact=True).call("echo", function=1).value == ((), {"function": 1})


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        *(("own", KeyError), ("exit", RuntimeError), ("stop", Exception), ("unicode", ValueError)),
        ("zero", ZeroDivisionError),
    ],
)
def test_errors_are_made_anew(
    guest: SimpleNamespace, meet: Callable[..., Any], kind: str, error: type[Exception]
) -> None:
    """Of a fixed list of names: an own class becomes the nearest builtin one, and none ends a program or a loop."""
    with pytest.raises(guest.relay.Raised) as caught:
        meet(exact=True).call("fails", kind)
    assert type(caught.value.error) is error
    assert kind != "own" or caught.value.error.args == ("k",)
    with pytest.raises(error) as again:
        meet(exact=True).function("fails")(kind)
    assert type(again.value) is error


def test_the_list_of_errors(guest: SimpleNamespace) -> None:
    """Each is made of one text, and none of them ends a loop or a program."""
    for name, kind in guest.kinds.ERRORS.items():
        assert type(guest.kinds.rebuilt(name, "said")) is kind
        assert not issubclass(kind, StopIteration | StopAsyncIteration | Warning)
    for name in ("SystemExit", "KeyboardInterrupt", "StopIteration", "eval", "Solver", ""):
        assert type(guest.kinds.rebuilt(name, "said")) is RuntimeError


def test_t25_objects_stay_where_they_are(guest: SimpleNamespace, meet: Callable[..., Any]) -> None:
    """A judge holds a number: it calls methods, gets plain values, and can give the object back."""
    candidate = meet(classes=["Solver"])
    solver = candidate.call("Solver", rate=0.5).value
    assert type(solver) is guest.relay.Handle
    assert solver.solve((1,), twice=True) == ((1,), True, 0.5)
    assert solver.twin().twin().solve(1) == (1, False, 2.0)
    assert solver.is_solution(solver) is True
    assert solver.is_solution(solver.twin()) is False
    assert candidate.call("Solver.solve", solver, 2).value == (2, False, 0.5)
    assert repr(solver) == "<Solver 0 of the candidate>"


def test_t25_handles_say_nothing_else(guest: SimpleNamespace, meet: Callable[..., Any]) -> None:
    """No truth, no length, no members, no order, no private names; a class that was not named does not cross."""
    candidate = meet(classes=["Solver"])
    solver = candidate.call("Solver").value
    asked: list[Callable[[], Any]] = [
        lambda: bool(solver), lambda: len(solver), lambda: list(solver), lambda: solver < 1, lambda: 1 in solver,
        lambda: float(solver), lambda: solver[0], lambda: solver + 1, lambda: solver(),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(TypeError):
            ask()
    for name in ("_secret", "__dict__", "__class_getitem__"):
        with pytest.raises(AttributeError):
            getattr(solver, name)
    assert solver != candidate.call("Solver").value
    with pytest.raises(guest.relay.NoFunction):
        candidate.call("Solver._secret", solver)
    with pytest.raises(guest.relay.BadReply):
        candidate.call("other")
    with pytest.raises(guest.relay.BadReply):
        meet(exact=True).call("Solver")
    with pytest.raises(guest.relay.BadReply, match="more than 10000 objects"):
        candidate.call("many")
    with pytest.raises(guest.values.NotPlain):
        meet(classes=["Solver"]).call("echo", solver)


def test_t25_handles_after_the_end(
    guest: SimpleNamespace, meet: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the result is handed over, an object that the judge kept says what is wrong, and nothing more is sent."""
    met = meet(classes=["Solver"])
    monkeypatch.setattr(guest.relay, "Candidate", lambda **_: met)
    with guest.relay.relay() as candidate:
        solver = candidate.call("Solver").value
    monkeypatch.setattr(Channel, "send", None)
    for ask in (lambda: solver.solve(1), lambda: candidate.call("echo", 1), candidate.null, candidate.measure):
        with pytest.raises(RuntimeError, match="after relay\\(\\) had ended"):
            ask()


@pytest.mark.parametrize("sent", [b"h\x05Other" + bytes(8), b"h\x06Solver" + b"\xff" * 8])
def test_t25_forged_handles(guest: SimpleNamespace, meet: Callable[..., Any], sent: bytes) -> None:
    """A class that was not named, and a number beyond the bound, are no answer."""
    with pytest.raises(guest.relay.BadReply):
        meet(b"V" + sent, classes=["Solver"]).call("Solver")


@pytest.fixture
def signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that lies beside judge and candidate alike."""
    (tmp_path / "signs.py").write_text(
        "from enum import Enum, Flag, IntEnum\n"
        "class Sign(Enum):\n    GO = 1\n    STOP = 2\n    HALT = 2\n"
        "class Size(IntEnum):\n    SMALL = 1\n"
        "class Parts(Flag):\n    LEFT = 1\n    RIGHT = 2\n"
        "class Other(Enum):\n    GO = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "signs", raising=False)
    yield importlib.import_module("signs")
    del sys.modules["signs"]


ENUMS = ["signs.Sign", "signs.Size", "signs.Parts"]


def test_members_of_enumerations_that_both_sides_have(meet: Callable[..., Any], signs: Any) -> None:
    """Each side finds its own member, wherever it stands; also where it is a key, and where it is a number, too."""
    sent = ([signs.Sign.GO, signs.Size.SMALL], {signs.Sign.HALT: {signs.Parts.LEFT}})
    (found,), _ = meet(enums=ENUMS).call("echo", sent).value
    assert found == sent
    assert found[0][0] is signs.Sign.GO
    assert type(found[0][1]) is signs.Size


def test_t25_other_enumerations_do_not_cross(guest: SimpleNamespace, meet: Callable[..., Any], signs: Any) -> None:
    """Neither one that was not named, nor a value that no member has; no module is imported for a candidate."""
    for value in (signs.Other.GO, signs.Parts.LEFT | signs.Parts.RIGHT, signs.Sign):
        with pytest.raises(guest.values.NotPlain):
            meet(enums=ENUMS).call("echo", value)
    forged = (b"enum antigravity.Sign", 0), (b"enum signs.Other", 0), (b"enum signs.Sign", 9), (b"enum Sign", 0)
    for name, number in forged:
        answer = b"Vh" + struct.pack(f"<B{len(name)}sQ", len(name), name, number)
        with pytest.raises(guest.relay.BadReply):
            meet(answer, enums=[*ENUMS, "signs.Lost"]).call("echo")
    assert "antigravity" not in sys.modules


def test_forged_errors(guest: SimpleNamespace, meet: Callable[..., Any]) -> None:
    """What a candidate says of its error is text: any number of them, and any name."""
    for more in (["x", "SystemExit", "y"], ["x", "KeyError"], ["x"], [*"abcdef"]):
        with pytest.raises(guest.relay.Raised) as caught:
            meet(b"E" + guest.values.encode(["raised", *more]), exact=True).call("echo")
        assert type(caught.value.error) is RuntimeError


def test_t24_sets_in_sets_are_looked_at_once(guest: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set in thirty others costs the judge one look at each of them, not one for every two."""
    looks, own = Counter[str](), guest.kinds.may_be_key

    def counted(*arguments: Any, **keywords: Any) -> Any:
        looks["all"] += 1
        return own(*arguments, **keywords)

    monkeypatch.setattr(guest.kinds, "may_be_key", counted)
    sets, depth = 20, 28
    one = b"".join(struct.pack("<cI", b"Z", 1) for _ in range(depth)) + struct.pack("<cI", b"Z", 0)
    value = guest.kinds.decode_exact(struct.pack("<cI", b"l", sets) + sets * one)
    assert looks["all"] <= 2 * sets * depth
    assert guest.kinds.decode_exact(guest.kinds.encode_exact(value)) == value
