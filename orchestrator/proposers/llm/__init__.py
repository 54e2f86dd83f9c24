"""Proposers that ask a model. What they tell it is data in frames; what it answers is text to be parsed."""

from orchestrator.proposers.llm.code import LlmCode
from orchestrator.proposers.llm.params import LlmParams

__all__ = ["LlmCode", "LlmParams"]
