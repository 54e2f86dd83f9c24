"""What a combination stage brings over a search that goes on flat, at the same number of trials, on held-out data.

No chambers: bases, combinations and judges are called in this process; the samplers and the choice of the pool are the
product's own. Two problems, each searched as its example is. *Digits* are the images of `examples/digits`: bases are
six kinds of model, written with numpy since scikit-learn is no dependency, on one of four views of an image, that
leave a share for each digit, of the rows that are asked for and of training rows that they have not learnt from;
combinations vote, weigh the shares, or learn from the training rows how far to trust whom, by least squares with a
penalty. *Portfolio* is the very code of
`examples/portfolio` on instances that are drawn for each seed; combinations choose, and mend nothing, since bases could
do that as well. Which data are learnt from, development and held-out is drawn for each seed, too.

A trial is one run of a base or of a combination; running the pool on the held-out data counts as one for each member.
All ways choose by the development score and are compared by the held-out score of what they chose: a flat search its
best base, `best combination` the best combination of a layered one, and `layered` the best of all that it tried, bases
included.
"""

import asyncio
import importlib.util
import json
import random
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from benchmarks.chance import of_mean
from benchmarks.digit_views import VIEWS
from benchmarks.figure import Figure
from benchmarks.samplers import ONE, Grown, proposed
from orchestrator.domain.pool import choose, shortlist
from orchestrator.domain.proposal import Value
from orchestrator.domain.records import Node, Role, Run
from orchestrator.domain.tier import USUAL
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.proposers.samplers import make_sampler
from orchestrator.proposers.space import random_point
from orchestrator.task import Choice, Float, Int, Parameter

SEEDS, TRIALS = 20, 60
# Seeds from 1000 and 3000 on were looked at while this was written, and those from 2000 on were reported before there
# were views. Where tpe proposes the bases of digits, they are of one kind of model, and combinations of them gain less.
FIRST = 5000
DIVERSITY = 0.5
FOLDS = 5
# Of the 1,797 images: few to learn from, so that there is something to gain, and most held out.
LEARN, ASKED = 200, 400
EXAMPLES = Path(__file__).parents[1] / "examples"
DEV, HELD = "dev", "held"
ROUNDS = 100_000

Point = Mapping[str, Value]


class Scored(NamedTuple):
    score: float
    tasks: dict[str, float]


class Problem(ABC):
    """One seed of it."""

    proposer: ClassVar[str]
    stage: ClassVar[int]  # of all trials, for the first of the two stages
    pool: ClassVar[int]
    bases: ClassVar[Mapping[str, Parameter]]
    combinations: ClassVar[Mapping[str, Parameter]]
    first: ClassVar[Point]  # the combination's workspace as it stands: a stage tries that before anything else

    @abstractmethod
    def base(self, point: Point, split: str) -> bytes:
        """What a base leaves."""

    @abstractmethod
    def combination(self, point: Point, members: Sequence[bytes], split: str) -> bytes: ...

    @abstractmethod
    def score(self, left: bytes, split: str) -> Scored: ...


class Digits(Problem):
    proposer, stage, pool = "random", 40, 7
    bases: ClassVar[Mapping[str, Parameter]] = {
        "view": Choice(values=("pixels", "blurred", "sums", "edges")),
        "model": Choice(values=("neighbours", "kernel", "subspaces", "bayes", "linear", "features")),
        "pixels": Float(low=0.3, high=1.0),
        "draw": Int(low=1, high=20),
        "strength": Float(low=1e-2, high=1e3, log=True),
        "neighbours": Int(low=1, high=15, step=2),
        "width": Int(low=50, high=400, step=50),
        "gamma": Float(low=1e-2, high=1.0, log=True),
    }
    combinations: ClassVar[Mapping[str, Parameter]] = {
        "rule": Choice(values=("vote", "weights", "stack")),
        **{f"weight{at}": Int(low=1, high=3) for at in range(7)},
        "strength": Float(low=3.0, high=1e2, log=True),
    }
    first: ClassVar[Point] = {"rule": "vote"}

    def __init__(self, seed: int) -> None:
        images, labels = _digits()
        order = np.random.default_rng(seed).permutation(len(images))
        learn, dev, held = order[:LEARN], order[LEARN : LEARN + ASKED], order[LEARN + ASKED :]
        self._learn, self._known = {name: view(images[learn]) for name, view in VIEWS.items()}, labels[learn]
        self._rows = {
            split: {name: view(images[rows]) for name, view in VIEWS.items()}
            for split, rows in ((DEV, dev), (HELD, held))
        }
        self._labels = {DEV: labels[dev], HELD: labels[held]}

    def base(self, point: Point, split: str) -> bytes:
        learn = self._learn[str(point["view"])]
        asked = self._said(point, learn, self._known, self._rows[split][str(point["view"])])
        unseen = np.zeros((len(learn), 10))
        for fold in range(FOLDS):
            held = np.arange(len(learn)) % FOLDS == fold
            unseen[held] = self._said(point, learn[~held], self._known[~held], learn[held])
        return _lines(np.vstack([asked, unseen]))

    def _said(self, point: Point, learn: Any, known: Any, rows: Any) -> Any:
        chance = np.random.default_rng(int(point["draw"]))
        seen = np.less(chance.random(learn.shape[1]), float(point["pixels"]))
        seen[32] = True
        model = getattr(self, f"_{point['model']}")
        return _alike(model(point, learn[:, seen], known, rows[:, seen], chance))

    def _neighbours(self, point: Point, learn: Any, known: Any, rows: Any, _: Any) -> Any:
        near = np.argsort(_apart(rows, learn), axis=1)[:, : int(point["neighbours"])]
        return np.eye(10)[known[near]].sum(axis=1) + 1e-3 * np.eye(10)[known[near[:, 0]]]

    def _kernel(self, point: Point, learn: Any, known: Any, rows: Any, _: Any) -> Any:
        """Least squares in the space of a Gaussian kernel: near to what support vectors do."""
        near, asked = (np.exp(-float(point["gamma"]) * _apart(it, learn)) for it in (learn, rows))
        return asked @ np.linalg.solve(near + 1e-2 * float(point["strength"]) * np.eye(len(learn)), np.eye(10)[known])

    def _subspaces(self, point: Point, learn: Any, known: Any, rows: Any, _: Any) -> Any:
        """How far a row is from the plane that the training rows of a digit lie near to."""
        found = []
        for digit in range(10):
            mine = learn[known == digit]
            middle = mine.mean(axis=0)
            axes = np.linalg.svd(mine - middle, full_matrices=False)[2][: int(point["neighbours"])]
            moved = rows - middle
            found.append(-((moved - moved @ axes.T @ axes) ** 2).sum(axis=1))
        return np.stack(found, axis=1)

    def _bayes(self, point: Point, learn: Any, known: Any, rows: Any, _: Any) -> Any:
        found = []
        for digit in range(10):
            mine = learn[known == digit]
            spread = mine.var(axis=0) + 1e-3 * float(point["strength"]) + 1e-4
            found.append(-(((rows - mine.mean(axis=0)) ** 2) / spread + np.log(spread)).sum(axis=1))
        return np.stack(found, axis=1)

    def _linear(self, point: Point, learn: Any, known: Any, rows: Any, _: Any) -> Any:
        return _ridge(learn, np.eye(10)[known], rows, float(point["strength"]))

    def _features(self, point: Point, learn: Any, known: Any, rows: Any, chance: Any) -> Any:
        mix = chance.normal(size=(learn.shape[1], int(point["width"])))
        shift = chance.normal(size=int(point["width"]))
        learnt, asked = (np.maximum(it @ mix + shift, 0) for it in (learn, rows))
        return _ridge(learnt, np.eye(10)[known], asked, float(point["strength"]))

    def combination(self, point: Point, members: Sequence[bytes], split: str) -> bytes:
        asked = len(self._labels[split])
        said = [_table(left) for left in members]
        if point["rule"] == "stack":
            learnt, rows = np.hstack([it[asked:] for it in said]), np.hstack([it[:asked] for it in said])
            return _lines(_ridge(learnt, np.eye(10)[self._known], rows, float(point["strength"])))
        weighs = point["rule"] == "weights"
        weights = [(int(point[f"weight{at}"]) if weighs else 1) + 1e-3 * (at == 0) for at in range(len(said))]
        whole = sum(weight * it[:asked] for weight, it in zip(weights, said, strict=True))
        return _lines(np.asarray(whole) / sum(weights))

    def score(self, left: bytes, split: str) -> Scored:
        wanted = self._labels[split]
        right = _table(left)[: len(wanted)].argmax(axis=1) == wanted
        return Scored(float(right.mean()), {str(it): float(right[wanted == it].mean()) for it in range(10)})


class Portfolio(Problem):
    proposer, stage, pool = "tpe", 35, 5
    bases: ClassVar[Mapping[str, Parameter]] = {
        "rule": Choice(values=("first", "best", "worst", "last")),
        "order": Choice(values=("given", "falling", "rising", "thirds", "pairs")),
        "noise": Float(low=0.0, high=0.6),
        "draw": Int(low=1, high=20),
    }
    combinations: ClassVar[Mapping[str, Parameter]] = {
        "choice": Choice(values=("first", "fullest")),
        "members": Int(low=1, high=5),
    }
    first: ClassVar[Point] = {"choice": "first", "members": 5}

    def __init__(self, seed: int) -> None:
        drawn = _loaded("portfolio/make_data")
        self._pack, self._portfolio = _loaded("portfolio/workspace/pack"), _loaded("portfolio/combine/portfolio")
        # Those of the example itself are seeds 1 and 2.
        self._instances = {split: drawn.instances(random.Random(f"{seed}/{split}")) for split in (DEV, HELD)}

    def base(self, point: Point, split: str) -> bytes:
        packed = self._pack.packed
        found = {it["name"]: packed(it["sizes"], it["capacity"], point, it["name"]) for it in self._instances[split]}
        return json.dumps(found).encode()

    def combination(self, point: Point, members: Sequence[bytes], split: str) -> bytes:
        pool, point = [json.loads(left) for left in members], {**point, "emptied": 0, "rounds": 0}
        found = {it["name"]: self._portfolio.chosen(it, pool, point) for it in self._instances[split]}
        return json.dumps(found).encode()

    def score(self, left: bytes, split: str) -> Scored:
        bins = json.loads(left)
        full = {
            it["name"]: sum(it["sizes"]) / (len(bins[it["name"]]) * it["capacity"]) for it in self._instances[split]
        }
        return Scored(statistics.fmean(full.values()), full)


class Tried(NamedTuple):
    """A base, or a combination of these bases."""

    point: Point
    members: tuple[Point, ...]
    left: bytes
    scored: Scored


# What bases left, by their points and splits: campaigns of one seed draw many of the same, which are run once.
Kept = dict[tuple[str, str], bytes]


class Search:
    """One campaign's trials. Combinations are proposed at random, as in the examples."""

    def __init__(self, problem: Problem, seed: int, kept: Kept) -> None:
        self.problem, self._seed, self._kept = problem, seed, kept
        self._draw = random.Random(seed)
        self._past = Grown()
        self.by(problem.proposer)
        self.tried: list[Tried] = []

    @property
    def bases(self) -> list[Tried]:
        return [it for it in self.tried if not it.members]

    def by(self, proposer: str) -> "Search":
        """Let this one propose the bases."""
        self._tpe = make_sampler("tpe", dict(self.problem.bases), ONE) if proposer == "tpe" else None
        return self

    async def base(self) -> None:
        if self._tpe:
            point = await proposed(self._tpe, self._past, self._seed)
        else:
            point = random_point(dict(self.problem.bases), self._draw)
        left = self._left(point, DEV)
        self.tried.append(Tried(point, (), left, self.problem.score(left, DEV)))
        self._past.add(point, self.tried[-1].scored.score)

    def _left(self, point: Point, split: str) -> bytes:
        name = (json.dumps(dict(point), sort_keys=True), split)
        if name not in self._kept:
            self._kept[name] = self.problem.base(point, split)
        return self._kept[name]

    def combination(self, members: Sequence[Tried], point: Point | None = None) -> None:
        point = point or random_point(dict(self.problem.combinations), self._draw)
        left = self.problem.combination(point, [it.left for it in members], DEV)
        points = tuple(it.point for it in members)
        self.tried.append(Tried(point, points, left, self.problem.score(left, DEV)))

    def some(self, of: Sequence[Tried]) -> list[Tried]:
        return self._draw.sample(list(of), self.problem.pool)

    def most(self) -> float:
        """The best of all combinations, chosen by the held-out score itself: no search can bring more with them."""
        combined = [it for it in self.tried if it.members]
        left = [self._left(point, HELD) for point in combined[0].members]
        wholes = (self.problem.combination(it.point, left, HELD) for it in combined)
        return max(self.problem.score(whole, HELD).score for whole in wholes)

    def held(self, *, combined: bool = False) -> float:
        """Of the best on development data, the first of several; `combined`: of the combinations."""
        best = max((it for it in self.tried if it.members or not combined), key=lambda it: it.scored.score)
        left = [self._left(point, HELD) for point in best.members or (best.point,)]
        whole = self.problem.combination(best.point, left, HELD) if best.members else left[0]
        return self.problem.score(whole, HELD).score


async def flat(search: Search) -> None:
    """Bases alone."""
    for _ in range(TRIALS):
        await search.base()


async def mixed(search: Search) -> None:
    """After ten bases, every other trial combines some of the ten best so far, drawn again each time. What it chose is
    run on the held-out data at the end, which takes as many trials as it has members.
    """
    for number in range(TRIALS - search.problem.pool):
        if number < 10 or number % 2:
            await search.base()
        else:
            search.combination(search.some(sorted(search.bases, key=lambda it: -it.scored.score)[:10]))


async def layered(search: Search, diversity: float = DIVERSITY) -> None:
    """Bases, a frozen pool, combinations of it."""
    for _ in range(search.problem.stage):
        await search.base()
    members = pooled(search.bases, search.problem.pool, diversity)
    search.combination(members, search.problem.first)
    for _ in range(TRIALS - search.problem.stage - len(members) - 1):
        search.combination(members)


def pooled(bases: Sequence[Tried], size: int, diversity: float) -> list[Tried]:
    """Chosen as a campaign chooses; what left the same is left out."""
    found: dict[str, Tried] = {}
    for it in sorted(bases, key=lambda it: -it.scored.score):
        if it.left not in [other.left for other in found.values()]:
            found[f"1.{len(found) + 1}"] = it
    run = Run(
        number=1, task="", digests={}, seed=0, proposer="", control=None, width=1, depth=1, why="", root="1", cohort="c"
    )
    nodes = [
        Node(id=name, parent="1", role=Role.SEARCH, number=1, verdicts={"c": _verdict(it.scored)})
        for name, it in found.items()
    ]
    outputs = {name: {"left": it.left} for name, it in found.items()}
    chosen = choose(shortlist(nodes, run, size), run, outputs, size, diversity)
    return [found[it.node] for it in chosen]


PROBLEMS: dict[str, type[Any]] = {"digits": Digits, "portfolio": Portfolio}
TPE, RANDOM, MIXED, COMBINED, LAYERED = "flat by tpe", "flat at random", "mixed", "best combination", "layered"
PAIRS = [(COMBINED, TPE), (COMBINED, RANDOM), (LAYERED, TPE), (LAYERED, RANDOM), (LAYERED, MIXED)]


async def _ways(name: str, seed: int) -> dict[str, float]:
    """The held-out score of what each of them chose."""
    problem = PROBLEMS[name](seed)
    kept: Kept = {}
    by_tpe, at_random, among, stage, merit = (Search(problem, seed, kept) for _ in range(5))
    await flat(by_tpe.by("tpe"))
    await flat(at_random.by("random"))
    await mixed(among)
    await layered(stage)
    await layered(merit, 0.0)
    return {
        TPE: by_tpe.held(),
        RANDOM: at_random.held(),
        MIXED: among.held(),
        COMBINED: stage.held(combined=True),
        LAYERED: stage.held(),
        "layered by merit alone": merit.held(),
        "best combination, chosen by the held-out score itself": stage.most(),
    }


def _one(name: str, seed: int) -> dict[str, float]:
    return asyncio.run(_ways(name, FIRST + seed))


def chance_of(differences: Sequence[float]) -> float:
    """One-sided: how likely so large a mean is where signs are a matter of luck."""
    values = np.asarray(differences)
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(ROUNDS, len(values)))
    return float(((signs @ values) >= values.sum() - 1e-12).sum() + 1) / (ROUNDS + 1)


async def measure(seeds: int = SEEDS) -> list[Figure]:
    figures = []
    with ProcessPoolExecutor() as pool:
        for name in PROBLEMS:
            found = list(pool.map(_one, [name] * seeds, range(seeds)))
            figures += _figures(name, found)
    return figures


def _figures(name: str, found: Sequence[Mapping[str, float]]) -> list[Figure]:
    means = {way: statistics.fmean(it[way] for it in found) for way in found[0]}
    figures = [Figure(f"combining, {name}: held-out score, {way}", mean, "") for way, mean in means.items()]
    for way, other in PAIRS:
        goal = "" if other == MIXED else "<= 0.01"
        gains = [it[way] - it[other] for it in found]
        low, high = of_mean(gains)
        told = f"combining, {name}: {way} above {other} on held-out data"
        figures.append(Figure(f"{told} ({low:.4f} to {high:.4f})", statistics.fmean(gains), ""))
        figures.append(Figure(f"{told}, p of {len(gains)} seeds", chance_of(gains), "", goal))
    return figures


def _digits() -> tuple[Any, Any]:
    """All images of the example, and what they show."""
    folder = EXAMPLES / "digits"
    train = np.loadtxt(folder / "inputs/train/images.csv", delimiter=",")
    images, labels = [train[:, :-1]], [train[:, -1]]
    for name, gold in (("dev", "dev_labels"), ("test", "labels")):
        images.append(np.loadtxt(folder / f"inputs/{name}/images.csv", delimiter=","))
        labels.append(np.loadtxt(folder / f"judge/gold/{gold}.csv", delimiter=","))
    return np.vstack(images) / 16, np.hstack(labels).astype(int)


def _apart(rows: Any, learn: Any) -> Any:
    """Squared distances."""
    return (rows**2).sum(axis=1)[:, None] - 2 * rows @ learn.T + (learn**2).sum(axis=1)[None]


def _ridge(learn: Any, wanted: Any, rows: Any, strength: float) -> Any:
    one, other = (np.hstack([it, np.ones((len(it), 1))]) for it in (learn, rows))
    return other @ np.linalg.solve(one.T @ one + strength * np.eye(one.shape[1]), one.T @ wanted)


def _alike(said: Any) -> Any:
    """Ten shares a row, whatever a model measures in; the largest stays the largest."""
    scaled = (said - said.mean(axis=1, keepdims=True)) / (said.std(axis=1, keepdims=True) + 1e-9)
    shares = np.exp(2 * scaled)
    return shares / shares.sum(axis=1, keepdims=True)


def _lines(table: Any) -> bytes:
    return "".join(",".join(f"{share:.4f}" for share in row) + "\n" for row in table).encode()


def _table(left: bytes) -> Any:
    return np.array(left.replace(b",", b" ").split(), dtype=float).reshape(-1, 10)


def _verdict(scored: Scored) -> Verdict:
    return Verdict(metrics={"score": scored.score}, tasks=scored.tasks, tier=USUAL, mode=Mode.SUBMIT, cohort="c")


def _loaded(name: str) -> ModuleType:
    """A program of an example, which is trusted here."""
    spec = importlib.util.spec_from_file_location(Path(name).name, EXAMPLES / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
