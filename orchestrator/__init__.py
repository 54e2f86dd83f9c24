"""Proposes, budgets, judges, records and shows. Never runs candidate code, knows nothing of containers."""
