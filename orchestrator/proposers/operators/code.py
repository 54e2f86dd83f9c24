"""A Python file as a concrete syntax tree, with the place of every node in its bytes.

Operators find nodes in the tree and change the bytes that they stand for: whatever is not meant stays as it is, down to
the last blank. Types, imports, decorators and what is printed are left out: to change them breaks a program, or does
nothing.
"""

import dataclasses
from collections.abc import Iterator
from functools import cached_property, lru_cache

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from orchestrator.change.regions import Region, spans
from orchestrator.proposers.operators.edit import line_of
from orchestrator.proposers.operators.safety import is_safe, parsed

BOM = b"\xef\xbb\xbf"
_LEFT_OUT = (
    cst.Annotation,
    cst.Import,
    cst.ImportFrom,
    cst.Decorator,
    cst.BaseParenthesizableWhitespace,
    cst.EmptyLine,
    cst.TrailingWhitespace,
    cst.Newline,
    cst.Raise,
    cst.Assert,
)
# What a program says on the way; to change it changes nothing else.
_TALK = ("print", "log", "logger", "logging", "warnings")
_NO_PARTS = ("lpar", "rpar", "comma", "semicolon", "equal", "lbracket", "rbracket", "lbrace", "rbrace", "dot", "colon")
Function = cst.FunctionDef | cst.ClassDef


class Spot:
    """A node of the tree with what is above it; `start` and `end` are its bytes, without brackets around it."""

    __slots__ = ("above", "end", "node", "owner", "start")

    def __init__(self, node: cst.CSTNode, above: "Spot | None", start: int, end: int, owner: str) -> None:
        self.node, self.above, self.start, self.end, self.owner = node, above, start, end, owner

    def ancestors(self) -> Iterator["Spot"]:
        spot = self.above
        while spot is not None:
            yield spot
            spot = spot.above

    def within(self, *kinds: type[cst.CSTNode]) -> bool:
        """Inside such a node, with no statement in between."""
        for spot in self.ancestors():
            if isinstance(spot.node, kinds):
                return True
            if isinstance(spot.node, cst.BaseStatement | cst.BaseSmallStatement):
                return False
        return False


class Code:
    """Raises ValueError for what is no Python, or could not be parsed without danger, or lacks its regions.

    Where there are regions, `of` finds what is in one or around one.
    """

    def __init__(self, data: bytes, path: str = "", regions: tuple[Region, ...] = ()) -> None:
        tree = parsed(data)
        if tree is None or not is_safe(data, tree):
            raise ValueError("no Python that can be worked on as a tree")
        if regions:
            spans(path, data, regions)
        self.data, self.path, self.regions = data, path, regions
        self._of: dict[tuple[type[cst.CSTNode], ...], list[Spot]] = {}
        self._shift = len(BOM) if data.startswith(BOM) else 0
        try:
            self.module = cst.parse_module(data[self._shift :].decode())
            if self.module.code.encode() != data[self._shift :]:
                raise ValueError("the tree does not give the file")
            self.spots = list(self._walk())
        except (cst.ParserSyntaxError, RecursionError) as error:
            raise ValueError("no Python that can be worked on as a tree") from error

    def of(self, *kinds: type[cst.CSTNode]) -> list[Spot]:
        if kinds not in self._of:
            self._of[kinds] = [spot for spot in self.reachable if isinstance(spot.node, kinds)]
        return self._of[kinds]

    @cached_property
    def reachable(self) -> list[Spot]:
        """All spots; where there are regions, those in one or around one."""
        if not self.regions:
            return self.spots
        around = spans(self.path, self.data, self.regions)
        return [spot for spot in self.spots if any(span.touches(spot.start, spot.end) for span in around)]

    def text(self, spot: Spot) -> bytes:
        return self.data[spot.start : spot.end]

    def line(self, spot: Spot) -> int:
        return line_of(self.data, spot.start)

    def inside(self, outer: Spot) -> list[Spot]:
        """All beneath it. Spots are in the order of a walk, so they stand together."""
        first, count = self._extents[id(outer)]
        return self.spots[first + 1 : first + count]

    def child(self, spot: Spot, node: cst.CSTNode | None) -> Spot | None:
        """The spot of a node right beneath this one."""
        found = self._by_node.get(id(node)) if node is not None else None
        return found if found and found.above is spot else None

    def spot(self, node: cst.CSTNode) -> Spot | None:
        return self._by_node.get(id(node))

    @cached_property
    def newline(self) -> bytes:
        return self.module.default_newline.encode()

    @cached_property
    def _by_node(self) -> dict[int, Spot]:
        return {id(spot.node): spot for spot in self.spots}

    @cached_property
    def _extents(self) -> dict[int, tuple[int, int]]:
        """Where each spot is in the walk, and how many there are with all that is beneath it."""
        counts = {id(spot): 1 for spot in self.spots}
        for spot in reversed(self.spots):
            if spot.above is not None:
                counts[id(spot.above)] += counts[id(spot)]
        return {id(spot): (at, counts[id(spot)]) for at, spot in enumerate(self.spots)}

    def _walk(self) -> Iterator[Spot]:
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        spans = wrapper.resolve(ByteSpanPositionProvider)
        root = Spot(self.module, None, self._shift, len(self.data), "")
        waiting = [root]
        while waiting:
            spot = waiting.pop()
            yield spot
            owner = _owner(spot)
            for node in reversed(_parts(spot.node)):
                span = spans.get(node)
                if span is not None:
                    start = span.start + self._shift
                    waiting.append(Spot(node, spot, start, start + span.length, owner))


def _owner(spot: Spot) -> str:
    """What is beneath this belongs to it, if it is a function; to its class if it is one."""
    if not isinstance(spot.node, Function):
        return spot.owner
    above = spot.owner.removesuffix("()")
    name = f"{above}.{spot.node.name.value}" if above else spot.node.name.value
    return f"{name[-60:]}()" if isinstance(spot.node, cst.FunctionDef) else name[-60:]


def _parts(node: cst.CSTNode) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    for name in _names(type(node)):
        value = getattr(node, name)
        parts = value if isinstance(value, list | tuple) else (value,)
        found += [part for part in parts if isinstance(part, cst.CSTNode) and not isinstance(part, _LEFT_OUT)]
    return [] if isinstance(node, cst.Call) and is_talk(node.func) else found


def is_talk(func: cst.CSTNode) -> bool:
    while isinstance(func, cst.Attribute):
        func = func.value
    return isinstance(func, cst.Name) and func.value in _TALK


@lru_cache(maxsize=512)
def _names(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = (field.name for field in dataclasses.fields(kind))
    return tuple(name for name in names if name not in _NO_PARTS and not name.startswith("whitespace"))


@lru_cache(maxsize=16)
def read_code(data: bytes, path: str = "", regions: tuple[Region, ...] = ()) -> Code | None:
    """None for what has to be worked on line by line. The last few are kept: a parent has many children."""
    try:
        return Code(data, path, regions)
    except ValueError:
        return None
