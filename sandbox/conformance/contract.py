"""The whole contract: every row, by name."""

from sandbox.conformance import job_rows, provider_rows
from sandbox.conformance.check import CHECKS, Check

ROWS = (job_rows, provider_rows)
CONTRACT: dict[str, Check] = CHECKS
