"""Functions with a known lowest value, over spaces as tasks write them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.domain.proposal import Value
from orchestrator.task import Bool, Choice, Float, Int, Parameter

Point = Mapping[str, Value]

_HARTMANN = (
    (1.0, (10, 3, 17, 3.5, 1.7, 8), (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886)),
    (1.2, (0.05, 10, 17, 0.1, 8, 14), (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991)),
    (3.0, (3, 3.5, 1.7, 10, 17, 8), (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650)),
    (3.2, (17, 8, 0.05, 10, 0.1, 14), (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381)),
)


@dataclass(frozen=True)
class Function:
    name: str
    space: dict[str, Parameter]
    value: Callable[[Point], float]
    lowest: float = 0.0

    def regret(self, point: Point) -> float:
        return max(0.0, self.value(point) - self.lowest)


def _numbers(point: Point) -> list[float]:
    return [float(point[name]) for name in sorted(point)]


def _branin(point: Point) -> float:
    x, y = _numbers(point)
    bowl = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return bowl**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def _hartmann(point: Point) -> float:
    x = _numbers(point)
    return -sum(
        height * math.exp(-sum(a * (at - p) ** 2 for a, p, at in zip(steep, place, x, strict=True)))
        for height, steep, place in _HARTMANN
    )


def _rosenbrock(point: Point) -> float:
    x = _numbers(point)
    return sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))


def _ackley(point: Point) -> float:
    x = _numbers(point)
    far = math.sqrt(sum(it**2 for it in x) / len(x))
    waves = sum(math.cos(2 * math.pi * it) for it in x) / len(x)
    return 20 + math.e - 20 * math.exp(-0.2 * far) - math.exp(waves)


def _rastrigin(point: Point) -> float:
    return sum(it**2 - 10 * math.cos(2 * math.pi * it) + 10 for it in _numbers(point))


def _models(point: Point) -> float:
    """As if models were tuned: which one decides what else there is to set."""
    match point["model"]:
        case "net":
            layers = int(point["layers"])
            wide = sum((math.log2(float(point[f"width{at}"])) - 6) ** 2 for at in range(1, layers + 1))
            off = 0.05 * (layers - 2) ** 2 + 0.03 * wide + (math.log10(float(point["rate"])) + 2.5) ** 2 * 0.1
        case "forest":
            off = 0.2 + abs(int(point["depth"]) - 9) * 0.03 + (0.05 if point["replace"] else 0.0)
        case _:
            off = 0.4 + (math.log10(float(point["rate"])) + 1) ** 2 * 0.05
    return off + (0.1 if point["scaled"] is False else 0.0)


def _recipe(point: Point) -> float:
    """Choices that count each for itself, and two that get in each other's way unless both are right."""
    off = sum((ord(str(value)) - ord("a")) * (3 * at + 2) % 5 for at, (_, value) in enumerate(sorted(point.items())))
    return off + 2.0 * (point["c0"] == point["c1"] != "a")


def _box(dimensions: int, low: float, high: float) -> dict[str, Parameter]:
    return {f"x{at}": Float(low=low, high=high) for at in range(dimensions)}


FUNCTIONS = (
    Function("Branin", {"x": Float(low=-5, high=10), "y": Float(low=0, high=15)}, _branin, 0.39788735772973816),
    Function("Hartmann 6d", _box(6, 0, 1), _hartmann, -3.322368011415512),
    Function("Rosenbrock 4d", _box(4, -5, 10), _rosenbrock),
    Function("Ackley 5d", _box(5, -20, 40), _ackley),
    Function("Rastrigin 5d", _box(5, -3, 5.12), _rastrigin),
    Function(
        "models, conditional",
        {
            "depth": Int(low=1, high=30, when={"model": ("forest",)}),
            "layers": Int(low=1, high=3, when={"model": ("net",)}),
            "model": Choice(values=("linear", "forest", "net")),
            "rate": Float(low=1e-5, high=1, log=True, when={"model": ("linear", "net")}),
            "replace": Bool(when={"model": ("forest",)}),
            "scaled": Bool(),
            "width1": Float(low=4, high=1024, log=True, when={"model": ("net",)}),
            "width2": Float(low=4, high=1024, log=True, when={"layers": (2, 3)}),
            "width3": Float(low=4, high=1024, log=True, when={"layers": (3,)}),
        },
        _models,
    ),
)

CHOICES = (Function("recipe of six choices", {f"c{at}": Choice(values=tuple("abcde")) for at in range(6)}, _recipe),)
