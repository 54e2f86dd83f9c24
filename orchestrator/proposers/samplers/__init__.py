"""Samplers that learn from what was tried: TPE, CMA-ES, a Gaussian process, Thompson sampling and
differential evolution. Imported only where one is wanted."""

import os
from collections.abc import Mapping

from orchestrator.domain.metric import Ranking
from orchestrator.proposers.samplers.sampler import Sampler
from orchestrator.proposers.space import listed
from orchestrator.task import Parameter


def make_sampler(name: str, space: Mapping[str, Parameter], ranking: Ranking) -> Sampler:
    """Raises ValueError for a space that the sampler can do nothing with."""
    # Chambers fill the processors, and linear algebra that waits for all of them at each step takes a hundred times as
    # long. Where the library is loaded already, it stays as it is.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Each brings libraries that are slow to import, so only the one that was asked for is.
    match name:
        case "tpe":
            from orchestrator.proposers.samplers.tpe import Tpe

            return Sampler(name, space, lambda: Tpe(space, ranking))
        case "cmaes":
            from orchestrator.proposers.samplers.cma import CmaEs

            return Sampler(name, space, lambda: CmaEs(space, ranking))
        case "gp":
            from orchestrator.proposers.samplers.gp import Gp

            return Sampler(name, space, lambda: Gp(space, ranking))
        case "thompson":
            from orchestrator.proposers.samplers.thompson import Thompson, arms_of

            arms = arms_of(space)
            whole = "space" if all(len(listed(space[at])) == len(it.values) for at, it in arms.items()) else "grid"
            return Sampler(name, arms, lambda: Thompson(arms, ranking), whole)
        case "de":
            from orchestrator.proposers.samplers.evolution import Evolution

            return Sampler(name, space, lambda: Evolution(space, ranking))
    raise ValueError(f"no sampler is called {name}")


__all__ = ["Sampler", "make_sampler"]
