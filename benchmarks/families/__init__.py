"""Families of problems for whatever chooses how to search: what it costs to get to a target.

Constants of the meta loop may be tuned on those that `FAMILIES` of benchmarks/meta_families.py marks as `tuning`:
expressions, the scheduler, and the regime that shifts; with seeds from 1000 on, which no table has. All others are held
back: nobody looks at them to choose a constant. Targets were set with blind searches alone, where half of them arrive
after about a hundred attempts.
"""
