"""Loops of a Python file: how far they go, in what order, and which kind of loop they are."""

import random
from collections.abc import Callable

import libcst as cst

from orchestrator.proposers.operators.code import Code, Spot
from orchestrator.proposers.operators.edit import Edit, Splice, line_of, snippet, spliced
from orchestrator.proposers.operators.hints import Hints, pick
from orchestrator.proposers.operators.statements import bindings

Change = Callable[[Code, Spot, random.Random], Edit | None]
_ROUNDS = (10, 100, 1_000, 10_000)


def loop(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """Another range, another order, or a `for` in place of a `while` and the other way round, where that is safe."""
    found: list[tuple[Spot, Change, float]] = []
    for spot in code.of(cst.Call, cst.For, cst.CompFor, cst.While):
        match spot.node:
            case cst.Call(func=cst.Name(value="range"), args=args) if 1 <= len(args) <= 3:
                found.append((spot, _other_range, 1.0))
            case cst.For() | cst.CompFor():
                found.append((spot, _other_order, 0.5))
                found.append((spot, _as_while, 0.1))
            case cst.While(body=cst.IndentedBlock(), orelse=None):
                found.append((spot, _as_for, 0.5))

    def weight(it: tuple[Spot, Change, float]) -> float:
        whole = _whole(it[0])
        return it[2] * hints.favour(it[0].owner) * hints.heat(whole.start, whole.end)

    chosen = pick(rng, found, weight)
    return chosen[1](code, chosen[0], rng) if chosen else None


def _whole(spot: Spot) -> Spot:
    """The loop that it belongs to."""
    kinds = (cst.For, cst.While, cst.CompFor)
    return next((it for it in (spot, *spot.ancestors()) if isinstance(it.node, kinds)), spot)


def _other_range(code: Code, spot: Spot, rng: random.Random) -> Edit | None:
    if not isinstance(spot.node, cst.Call):
        return None
    args = [code.child(spot, arg) for arg in spot.node.args]
    texts = [code.text(arg) for arg in args if arg is not None]
    if len(texts) != len(args) or any(arg.star or arg.keyword for arg in spot.node.args):
        return None
    new = b"range(" + b", ".join(_other_bounds(texts, rng)) + b")"
    said = f"turned {snippet(code.text(spot))} into {snippet(new)}"
    data = spliced(code.data, [Splice(spot.start, spot.end, new)])
    return Edit(data, said, code.line(spot), spot.owner)


def _other_bounds(bounds: list[bytes], rng: random.Random) -> list[bytes]:
    stop = min(1, len(bounds) - 1)
    match rng.choice(("longer", "shorter", "twice", "half", "later", "step")):
        case "longer":
            bounds[stop] = _plus(bounds[stop], b"+ 1")
        case "shorter":
            bounds[stop] = _plus(bounds[stop], b"- 1")
        case "twice":
            bounds[stop] = b"2 * " + _safe(bounds[stop])
        case "half":
            bounds[stop] = _safe(bounds[stop]) + b" // 2"
        case "later":
            bounds = [b"1", *bounds] if len(bounds) == 1 else [_plus(bounds[0], b"+ 1"), *bounds[1:]]
        case "step" if len(bounds) == 1:
            bounds = [b"0", *bounds, b"2"]
        case "step" if len(bounds) == 2:
            bounds = [*bounds, b"2"]
        case _:
            bounds[2] = b"2 * " + _safe(bounds[2])
    return bounds


def _plus(text: bytes, more: bytes) -> bytes:
    """`n - 1` and one more is `n`."""
    for ending, undone in ((b" + 1", b"- 1"), (b" - 1", b"+ 1")):
        if text.endswith(ending) and more == undone:
            return text.removesuffix(ending)
    return _safe(text) + b" " + more


def _safe(text: bytes) -> bytes:
    simple = text.replace(b"_", b"a").replace(b".", b"a").isalnum()
    return text if simple else b"(" + text + b")"


def _other_order(code: Code, spot: Spot, rng: random.Random) -> Edit | None:
    source = code.child(spot, getattr(spot.node, "iter", None))
    if source is None or getattr(spot.node, "asynchronous", None) is not None:
        return None
    text = code.text(source)
    match source.node:
        case cst.Call(func=cst.Name(value="reversed"), args=[cst.Arg(keyword=None, star="") as only]):
            inner = code.child(source, only)
            new = code.text(inner) if inner else text
        case cst.Call(func=cst.Name(value="range")):
            new = b"reversed(" + text + b")"
        case cst.Call(func=cst.Name(value="sorted"), args=[cst.Arg(value=cst.Name(), comma=cst.MaybeSentinel.DEFAULT)]):
            new = text[:-1] + b", reverse=True)"
        case _:
            new = rng.choice((b"reversed(list(" + text + b"))", b"sorted(" + text + b")"))
    said = f"turned {snippet(text)} into {snippet(new)} in a loop"
    return Edit(spliced(code.data, [Splice(source.start, source.end, new)]), said, code.line(source), spot.owner)


def _as_for(code: Code, spot: Spot, rng: random.Random) -> Edit | None:
    """A `while` that ends after so many rounds in any case."""
    test = code.child(spot, getattr(spot.node, "test", None))
    first = _first_of_body(code, spot)
    if test is None or first is None:
        return None
    rounds = rng.choice(_ROUNDS)
    leave = b"if not (" + code.text(test) + b"): break"
    # The condition is asked where the body begins; one that is always true needs no asking.
    asked = [] if code.text(test) == b"True" else [Splice(first, first, leave + code.newline + _indent(code, first))]
    header = Splice(spot.start, _end(code, test), f"for _ in range({rounds})".encode())
    said = f"turned `while` into at most {rounds} rounds"
    return Edit(spliced(code.data, [header, *asked]), said, code.line(spot), spot.owner)


def _as_while(code: Code, spot: Spot, rng: random.Random) -> Edit | None:
    """A counter that the body, and other changes, can get at. Not with `continue`, which would skip the counting."""
    del rng
    match spot.node:
        case cst.For(
            target=cst.Name(value=name),
            iter=cst.Call(func=cst.Name(value="range"), args=[_] | [_, _] as args),
            body=cst.IndentedBlock() as body,
            orelse=None,
            asynchronous=None,
        ):
            pass
        case _:
            return None
    block, source, target = code.child(spot, body), code.spot(spot.node.iter), code.spot(spot.node.target)
    if block is None or source is None or target is None:
        return None
    inside = code.inside(block)
    fixed = {it.node.value for it in code.inside(source) if isinstance(it.node, cst.Name)} | {name}
    if any(isinstance(it.node, cst.Continue) for it in inside) or fixed & {it for it, _ in bindings(code, block)}:
        return None
    bounds = [code.text(it) for it in (code.child(source, arg) for arg in args) if it]
    last = code.data.find(b"\n", block.end)
    if len(bounds) != len(args) or last < 0 or _alone_on_line(code, spot) is None:
        return None
    counter, indent = name.encode(), _indent(code, block.start)
    before = counter + b" = " + (bounds[0] if len(bounds) == 2 else b"0") + code.newline + _indent(code, spot.start)
    splices = [
        Splice(spot.start, spot.start, before),
        Splice(spot.start, _end(code, source), b"while " + counter + b" < " + _safe(bounds[-1])),
        Splice(last + 1, last + 1, indent + counter + b" += 1" + code.newline),
    ]
    said = f"turned the `for` over {snippet(code.text(source))} into a `while`"
    return Edit(spliced(code.data, splices), said, line_of(code.data, spot.start), spot.owner)


def _first_of_body(code: Code, spot: Spot) -> int | None:
    body = code.child(spot, getattr(spot.node, "body", None))
    return body.start if body is not None and _alone_on_line(code, body) is not None else None


def _alone_on_line(code: Code, spot: Spot) -> bytes | None:
    """What stands before it on its line, if that is nothing but blanks."""
    before = code.data[code.data.rfind(b"\n", 0, spot.start) + 1 : spot.start]
    return None if before.strip(b" \t\f") else before


def _indent(code: Code, at: int) -> bytes:
    return code.data[code.data.rfind(b"\n", 0, at) + 1 : at]


def _end(code: Code, part: Spot) -> int:
    """Where a part ends with the brackets that stand around it."""
    end = part.end
    for _ in getattr(part.node, "rpar", ()):
        end = code.data.find(b")", end) + 1
    return end
