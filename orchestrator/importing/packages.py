"""From what a program imports to what its image must have.

A name that is not in the table is not guessed: anybody can put a package of that name on the index.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.importing.placed import Import, Placed, imports_of
from orchestrator.importing.program import package_files
from orchestrator.importing.source import Source
from orchestrator.task import TaskError

# Names on the package index, where they are those of the import: both are theirs for long.
_SAME = (
    "cvxpy", "datasets", "jax", "jaxlib", "joblib", "lightgbm", "matplotlib", "mpmath", "networkx", "numba", "numpy",
    "openai", "optax", "orjson", "ortools", "pandas", "polars", "psutil", "pyarrow", "pydantic", "pytest", "requests",
    "scipy", "seaborn", "shapely", "statsmodels", "sympy", "tabulate", "tensorflow", "threadpoolctl", "torch",
    "torchvision", "tqdm", "transformers", "xgboost",
)  # fmt: skip
KNOWN = {name: name for name in _SAME} | {
    "Levenshtein": "levenshtein",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "editdistance": "editdistance",
    "evo_agent": "evo-agent",
    "flax": "flax",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
# What the driver brings itself of other systems, module and name: blastdoor_openevolve and blastdoor_shinka have it.
LENT = {
    "openevolve": ("openevolve.evaluation_result", "EvaluationResult"),
    "shinka": ("shinka.core", "run_shinka_eval"),
}
_INDEX_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CLAUSE = re.compile(r"(?:~=|===?|!=|[<>]=?)\s*[0-9][0-9A-Za-z.*+!]*")
_REQUIREMENT_CHARACTERS = 500


@dataclass
class Needs:
    """What a file needs, and what those need that lie beside it: packages, and files of its own folder."""

    packages: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    not_found: list[str] = field(default_factory=list)

    def requirements(self, versions: Mapping[str, str]) -> list[str]:
        return [f"{name}{versions.get(name, '')}" for name in sorted(self.packages)]


def needs_of(
    source: Source, start: str, given: Mapping[str, str], placed: Sequence[Placed] = (), *, outside: bool = False
) -> Needs:
    """Follows imports within the folder, and into those that are placed beside it. Raises TaskError for one that nobody
    knows a package for; `outside` says that the file looks outside of its folder, where it may be found.
    """
    together = package_files(source, start)
    needs = Needs(files={start, *together})
    waiting, followed = [start, *(it for it in together if it.endswith(".py") and it != start)], set[str]()
    while waiting:
        name = waiting.pop()
        for found in imports_of(source.python(name)):
            top = found.module.partition(".")[0]
            if top in followed:
                continue
            where = f"{source.folder / name}:{found.line}"
            files = source.module_files(top)
            beside = [it for it in files if it.endswith(".py")]
            if beside:
                followed.add(top)
                waiting += [it for it in beside if it not in needs.files]
                needs.files.update(files)
            elif top in LENT:
                _refuse_unlent(found, where)
            elif there := next((it for it in placed if it.has(top)), None):
                _add_placed(needs, there, found, given)
            elif top not in sys.stdlib_module_names:
                _add_package(needs, found, top, given, where, outside=outside)
    return needs


def _add_placed(needs: Needs, there: Placed, found: Import, given: Mapping[str, str]) -> None:
    """What of a whole repository is really run cannot be told by reading, so nothing is refused for its sake."""
    for it in there.follow(found):
        top = it.module.partition(".")[0]
        if package := given.get(top) or KNOWN.get(top):
            needs.packages.add(package)
        elif top not in sys.stdlib_module_names:
            line = f"{top}, which {there.where} imports"
            needs.not_found += [line] if line not in needs.not_found else []


def _add_package(needs: Needs, found: Import, top: str, given: Mapping[str, str], where: str, *, outside: bool) -> None:
    if package := given.get(top) or KNOWN.get(top):
        needs.packages.add(package)
    elif found.optional:
        needs.not_found.append(f"{top} ({where}), which the program can do without")
    else:
        place = ", or import it with --place WHERE=FOLDER, since it looks outside of its folder" if outside else ""
        raise TaskError(
            f"{where}: imports {top}, and no package is known for it; put the module beside the evaluator,"
            f" or name its package with --package {top}=NAME{place}"
        )


def _refuse_unlent(found: Import, where: str) -> None:
    module, name = LENT[found.module.partition(".")[0]]
    if found.module != module:
        raise TaskError(
            f"{where}: imports {found.module}, and only {name} of {module} is there for a judge; take the import out"
        )


def versions_of(source: Source) -> dict[str, str]:
    """What the folder's own requirements.txt says of versions, by names of the index; lines of another kind are not
    taken over.
    """
    if "requirements.txt" not in source.names:
        return {}
    lines = source.text("requirements.txt").splitlines()
    return dict(found for line in lines[:1000] if (found := parse_requirement(line.partition("#")[0].strip())))


def parse_requirement(line: str) -> tuple[str, str] | None:
    """Name and version. Each clause is matched alone: one pattern for all of them could be cut in too many ways."""
    name = _INDEX_NAME.match(line)
    if name is None or len(line) > _REQUIREMENT_CHARACTERS:
        return None
    clauses = [it.strip() for it in line[name.end() :].rstrip(", ").split(",")]
    if clauses != [""] and not all(map(_CLAUSE.fullmatch, clauses)):
        return None
    return name[0].lower().replace("_", "-"), re.sub(r"\s+", "", ",".join(clauses))
