"""Numbers and flags of a Python file: one at a time, several of a function together, or further in a good direction."""

import math
import random
from collections.abc import Sequence

import libcst as cst

from orchestrator.proposers.operators.code import Code, Spot, read_code
from orchestrator.proposers.operators.edit import Edit, Splice, counted, line_of, listed, spliced
from orchestrator.proposers.operators.hints import Hints, pick
from orchestrator.proposers.operators.numbers import continued, is_real, read_number, stepped

MOST_AT_ONCE = 32
_STRUCTURE = (0, 1, 2)  # as a rule counts and places, which a program is built around
_ALONE = (cst.Arg, cst.AssignTarget, cst.Assign, cst.AnnAssign, cst.Param, cst.Return, cst.Element, cst.DictElement)


def constant(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """One number becomes another."""
    spots = _numbers(code)

    def weight(spot: Spot) -> float:
        return _likely(spot) * hints.favour(spot.owner) * hints.dull(spot.owner, code.text(spot).decode())

    spot = pick(rng, spots, weight)
    return _changed(code, spot, rng, hints) if spot else None


def numbers(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """Several numbers of one function move at once: a step of a search over all of them."""
    groups: dict[str, list[Spot]] = {}
    for spot in _numbers(code):
        if read_number(_text(code, spot)) not in _STRUCTURE and not _is_place(spot):
            groups.setdefault(spot.owner, []).append(spot)
    owners = [owner for owner, group in groups.items() if len(group) > 1]
    owner = pick(rng, owners, hints.favour)
    if owner is None:
        return None
    group = groups[owner]
    chosen = rng.sample(group, rng.randint(2, max(2, min(len(group), 2 + len(group) // 2, MOST_AT_ONCE))))
    size = hints.step("several") / math.sqrt(len(chosen))
    moved = []
    for spot in sorted(chosen, key=lambda it: it.start):
        old = _text(code, spot)
        value = read_number(old)
        new = stepped(value, rng, size) if value is not None else None
        if new is not None:
            moved.append((spot, old, new))
    return _moved(code, moved, "moved {} together") if len(moved) > 1 else None


def onward(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """The step that made it better once more: as far again, or half, or twice."""
    earlier = read_code(hints.before, code.path, code.regions) if hints.before is not None else None
    if earlier is None:
        return None
    here, there = _numbers(code), _numbers(earlier)
    if _skeleton(code, here) != _skeleton(earlier, there):
        return None
    share = rng.choice((0.5, 1.0, 1.0, 2.0, 4.0)) * math.exp(rng.gauss(0.0, 0.2))
    moved = []
    for spot, before in zip(here, there, strict=True):
        new, old = read_number(_text(code, spot)), read_number(_text(earlier, before))
        if new is None or old is None or new == old:
            continue
        if (further := continued(old, new, share)) is not None:
            moved.append((spot, _text(code, spot), further))
    return _moved(code, moved, "went on with {}") if moved else None


def flag(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """True becomes False, or the other way round."""
    other = {"True": "False", "False": "True"}
    spots = [spot for spot in code.of(cst.Name) if isinstance(spot.node, cst.Name) and spot.node.value in other]
    spot = pick(rng, spots, lambda it: hints.favour(it.owner))
    if spot is None:
        return None
    old = _text(code, spot)
    data = spliced(code.data, [Splice(spot.start, spot.end, other[old].encode())])
    return Edit(data, f"changed {old} to {other[old]}", code.line(spot), spot.owner)


def _numbers(code: Code) -> list[Spot]:
    spots = code.of(cst.Integer, cst.Float)
    return [spot for spot in spots if read_number(_text(code, spot)) is not None]


def _likely(spot: Spot) -> float:
    """How likely a number is one to be tuned, by how it is used."""
    value = read_number(spot.node.value) if isinstance(spot.node, cst.Integer | cst.Float) else None
    weight = 0.4 if isinstance(value, int) and value in _STRUCTURE else 1.0
    if _is_place(spot):
        weight *= 0.15
    return weight


def _is_place(spot: Spot) -> bool:
    return spot.within(cst.Index, cst.Slice)


def _changed(code: Code, spot: Spot, rng: random.Random, hints: Hints) -> Edit | None:
    old = _text(code, spot)
    value = read_number(old)
    new = stepped(value, rng, hints.step("real" if is_real(old) else "whole")) if value is not None else None
    if new is None:
        return None
    data = spliced(code.data, [Splice(spot.start, spot.end, _fitting(spot, new))])
    return Edit(data, f"changed {old} to {new}", code.line(spot), spot.owner)


def _moved(code: Code, moved: Sequence[tuple[Spot, str, str]], said: str) -> Edit:
    data = spliced(code.data, [Splice(spot.start, spot.end, _fitting(spot, new)) for spot, _, new in moved])
    first = moved[0][0]
    what = listed([f"{old} to {new}" for _, old, new in moved])
    if len(moved) > 1:
        what = f"{counted(len(moved), 'number')} ({what})"
    return Edit(data, said.format(what), line_of(code.data, first.start), first.owner)


def _fitting(spot: Spot, new: str) -> bytes:
    """A number that became negative is put in brackets where something stands beside it."""
    alone = spot.above is None or isinstance(spot.above.node, _ALONE)
    return (new if alone or not new.startswith("-") else f"({new})").encode()


def _skeleton(code: Code, spots: Sequence[Spot]) -> bytes:
    """The file without its numbers."""
    return spliced(code.data, [Splice(spot.start, spot.end, b"\0") for spot in spots])


def _text(code: Code, spot: Spot) -> str:
    return code.text(spot).decode()
