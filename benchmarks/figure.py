"""A measured figure beside the goal that it has to meet."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`goal` reads like "<= 4" or ">= 0.9"; without one the figure is for information."""

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
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return f"| {self.name} | {self.value:.4g} {self.unit} | {self.goal} | {verdict} |"
