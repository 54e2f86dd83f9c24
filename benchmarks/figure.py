"""A measured figure beside the goal that it has to meet."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`goal` reads like "<= 4" or ">= 0.9"; without one the figure is for information. Of what could not be measured
    here, the value is no number.
    """

    name: str
    value: float
    unit: str
    goal: str = ""

    @property
    def met(self) -> bool | None:
        if not self.goal:
            return None
        sign, bound = self.goal.split()
        return self.value <= float(bound) if sign == "<=" else self.value >= float(bound)

    def row(self) -> str:
        if math.isnan(self.value):
            return f"| {self.name} | not measured | {self.goal} | |"
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return f"| {self.name} | {self.value:.4g} {self.unit} | {self.goal} | {verdict} |"
