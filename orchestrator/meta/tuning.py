"""Every constant of the meta loop, in one place, with why it is what it is. Benchmarks try others."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    # What an attempt is worth that was not better than its parent. One that runs and matters is nearer to a better one
    # than one that does not; a cheat is worth less than nothing, since it costs trust as well.
    broken: float = 0.0
    invalid: float = 0.0
    pruned: float = 0.05
    same: float = 0.02
    worse: float = 0.06
    cheat: float = -0.3
    # The smallest gain, beside the largest one: 1. Gains count by their rank among the last so many, because the scale
    # of scores is the task's own, and late gains are smaller than early ones on almost every task.
    better: float = 0.6
    ranks: int = 12
    # One run of a noisy task may be luck: it counts so much beside a value that was certified.
    screened: float = 0.5

    # What is expected of a child before its parent has any counts as so many children; older results fade.
    parent_trust: float = 3.0
    fading: float = 0.97
    # Lineage: what an ancestor gets of a gain, for each generation in between, and how far back.
    inherited: float = 0.5
    generations: int = 6

    # Nothing is learnt in a slot, or of a knob, from fewer results than this.
    wait: int = 4
    # Of the draws, the share that asks nobody what was learnt. It keeps every arm alive.
    floor: float = 0.2
    # Late results were drawn under another policy: they count by how much more likely they are now, within this.
    clip: float = 3.0
    # A single advantage, in units of what is usual, counts at most so much.
    most: float = 5.0

    # lift: an arm's mean counts as if so many results had been average; what one unit of it does to its weight.
    trust: float = 5.0
    sharpness: float = 2.0

    # gradient: how far one result moves the logits, and how much of them is forgotten with each.
    rate: float = 1.0
    forgetting: float = 0.01
    # What is under way counts as an advantage of less than nothing by so much, until it ends.
    doubt: float = 0.2
    # Knobs: the spread of the draw's logarithm, and how far one result moves its mean, in draws.
    spread: float = 0.5
    knob_rate: float = 0.3

    # Page-Hinkley on what following the policy brings beyond the prior: the drift that is tolerated, the sum that is
    # too much, and how much of the logits is left then.
    drift: float = 0.05
    alarm: float = 6.0
    kept: float = 0.2


USUAL = Tuning()
