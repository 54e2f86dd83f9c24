"""Tasks of Harbor, the format of Terminal-Bench 2: task.toml, instruction.md, environment/Dockerfile, tests/test.sh.

There an agent works in a container, and then tests run in it. Here a change edits the files of the working folder and a
script of commands; the script runs in the candidate's chamber, and the tests get the files that it left. Where they run
what a candidate wrote, both must be in one chamber, and the verdict is of the tier `shared`.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from posixpath import dirname, normpath
from typing import Any

from orchestrator import bounded_toml
from orchestrator.change import shown
from orchestrator.importing.base import Imported, ImportRequest
from orchestrator.importing.called import toml_list, toml_paragraphs, toml_text
from orchestrator.importing.config import number, section
from orchestrator.importing.dockerfile import Recipe, one_each, read_dockerfile
from orchestrator.importing.harbor_tests import SCRIPT, Tests, read_tests
from orchestrator.importing.source import Source
from orchestrator.task import TaskError

_METRIC = "reward"
_PATH = re.compile(r"/([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?")
_DOCKERFILE = "environment/Dockerfile"
_TESTS_DOCKERFILE = "tests/Dockerfile"  # where they have a container of their own
_SHARED_PARENTS = ("home", "opt", "srv", "mnt", "var")
# Where chambers have something of their own, whatever the image has.
_EMPTY = ("/tmp/", "/work/", "/inputs/", "/dev/", "/proc/", "/sys/")  # noqa: S108  of an image, not of this machine
_LINKS = 200
_COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
_STATEMENT_CHARACTERS = 20_000
_TIMEOUT_S = 600.0
_MEMORY_MIB = 2048
_SCRIPT = "#!/bin/bash\n# The commands that solve the task. They run in {workdir}, without a network.\n"
_DRIVER = '''"""Runs tests/test.sh on what a candidate left, and takes the reward that it writes."""

from blastdoor_harbor import judge

if __name__ == "__main__":
    judge({arguments})
'''


@dataclass(frozen=True)
class _Task:
    """What was read of one. `root` is the folder whose files a candidate has: `workdir`, or one above it."""

    request: ImportRequest
    source: Source
    config: dict[str, Any]
    recipe: Recipe
    tests: Tests
    root: str
    script: str

    @cached_property
    def elsewhere(self) -> list[str]:
        """What the Dockerfile copies to other places than the workspace: inputs, with a link from where they belong.
        Raises TaskError for places that are empty in every chamber.
        """
        ours = (f"{self.root}/", "/tests/", "/logs/")
        found = sorted(path for path in self.recipe.files if not path.startswith(ours))
        wrong = next((path for path in found if path.startswith(_EMPTY) or not _PATH.fullmatch(path)), None)
        if wrong or len(found) > _LINKS:
            raise TaskError(
                f"{self.source.folder}: {_DOCKERFILE} copies to {shown(wrong or found[0])}, and that cannot be brought"
                f" there; copy it beneath {self.root}"
            )
        return found

    @property
    def metric(self) -> str:
        return self.request.metric or _METRIC

    @property
    def memory(self) -> str:
        """As the task file writes it; a text is a size there, too."""
        table = section(self.config, "environment")
        given = table.get("memory")
        if isinstance(given, str):
            return toml_text(given)
        return f'"{number(table.get("memory_mb"), 64, 1 << 20, _MEMORY_MIB):g}MiB"'

    def seconds(self, table: str) -> float:
        return number(section(self.config, table).get("timeout_sec"), 1, 86_400, _TIMEOUT_S)

    def text(self) -> str:
        shared = self.tests.why_shared
        links = [_link(self.root, "/work/src" if not shared else "/work/tmp/app")]
        judge_links = [_link(self.root, "/work/tmp/app")]
        links += [_input_link(path) for path in self.elsewhere]
        judge_links += [_input_link(path) for path in self.elsewhere]
        of_tests = [_link("/tests", "/work/src/judge/tests"), _link("/logs", "/work/tmp/logs")]
        cpus = number(section(self.config, "environment").get("cpus"), 0.01, 64, 1)
        lines = [
            f"# Imported from a task of Harbor: {shown(self.source.folder.name)}.",
            "",
            f"name = {toml_text(self.request.name)}",
            f"statement = {toml_paragraphs(self._statement())}",
            'editable = ["**"]',
            "",
            "[trial] # the commands of the candidate, then what they left",
            f"command = {toml_text(self._command())}",
            *([f"env = {_table(self.recipe.env)}"] if self.recipe.env else []),
            *(
                ["", "[inputs] # read-only, with links from where they belong", 'files = "inputs/files"']
                * bool(self.elsewhere)
            ),
            "",
            "[limits]",
            f'wall = "{self.seconds("agent"):g}s"',
            f"memory = {self.memory}",
            f"cpus = {cpus:g}",
            *_image("image", self._packages(shared=bool(shared)), [*links, *(of_tests if shared else [])]),
            "",
            f"[judge] # {shown(shared, 200)}" if shared else "[judge] # the tests, on the files that a candidate left",
            f'mode = "{"shared" if shared else "data"}"',
            'command = ["python3", "judge.py"]',
            f'limits = {{wall = "{self._judge_wall():g}s", memory = {self.memory}, cpus = {cpus:g}}}',
            *([] if shared else _image("judge.image", (self.tests.apt, self.tests.pip), [*judge_links, *of_tests])),
            "",
            "[[metrics]]",
            f"name = {toml_text(self.metric)}",
            'goal = "higher"',
            "",
            "[search] # without a model; --proposer llm asks one",
            'proposer = "operators"',
            "",
        ]
        return "\n".join(lines)

    def _judge_wall(self) -> float:
        return self.seconds("verifier") + (self.seconds("agent") if self.tests.why_shared else 0)

    def _packages(self, *, shared: bool) -> tuple[list[str], list[str]]:
        more = self.tests if shared else Tests()
        return [*self.recipe.apt, *more.apt], [*self.recipe.pip, *more.pip]

    def _command(self) -> str:
        inside = normpath(self.recipe.workdir).removeprefix(self.root).strip("/")
        enter = (
            f"mkdir -p {inside} && (cd {inside} && bash /work/src/{self.script})" if inside else f"bash {self.script}"
        )
        return f'{enter}; cd /work/src && cp -RL . "$BLASTDOOR_OUT"'

    def _statement(self) -> str:
        said = self.source.text("instruction.md").strip()[:_STATEMENT_CHARACTERS]
        return (
            f"{said}\n\nThe files of {self.root} are here. {self.script} runs in {self.recipe.workdir}, without a"
            f" network; what lies in {self.root} after it is what the tests see."
            f" What counts is {self.metric}; higher is better."
        )

    def driver(self) -> str:
        given: dict[str, object] = {"root": self.root, "workdir": self.recipe.workdir}
        given |= {"metric": self.metric} if self.metric != _METRIC else {}
        given |= {"shared": self.script} if self.tests.why_shared else {}
        env = _variables(self.recipe, self.config)
        given |= {"env": env} if env else {}
        return _DRIVER.format(arguments=", ".join(f"{name}={it!r}" for name, it in given.items()))


def read(request: ImportRequest) -> Imported:
    source = Source.of(request.source)
    _need(source, "task.toml")
    if request.placed:
        raise TaskError(f"{source.folder}: a task of Harbor has its files beside it; leave --place out")
    config = _config(source)
    _refuse_what_cannot_run(source, config)
    _need(source, "instruction.md", SCRIPT, _DOCKERFILE)
    recipe = read_dockerfile(source, _DOCKERFILE)
    workdir = section(config, "environment").get("workdir")
    recipe.workdir = normpath(workdir) if isinstance(workdir, str) and workdir.startswith("/") else recipe.workdir
    root = _root(recipe.workdir, source)
    tests = read_tests(source, root, _variables(recipe, config), recipe.files)
    if _TESTS_DOCKERFILE in source.names:
        own = read_dockerfile(source, _TESTS_DOCKERFILE)
        tests.apt += own.apt
        tests.pip += own.pip
        recipe.left_out += [it for it in own.left_out if it not in recipe.left_out]
    if tests.outside:
        raise TaskError(
            f"{source.folder}: {tests.outside}, and what a candidate can write is {root} alone: a chamber's own files"
            " are read-only; let the tests look there"
        )
    script = "solve.sh" if f"{root}/solve.sh" not in recipe.files else "blastdoor_solve.sh"
    return _imported(_Task(request, source, config, recipe, tests, root, script))


def _need(source: Source, *names: str) -> None:
    """Raises TaskError for a file that is not there."""
    if missing := next((name for name in names if name not in source.names), None):
        raise TaskError(f"{source.folder}: has no {missing}; name the folder of one task of Harbor")


def _imported(it: _Task) -> Imported:
    taken = {path: name for path, name in it.recipe.files.items() if path.startswith(f"{it.root}/")}
    files = {"blastdoor.toml": it.text().encode()}
    files |= {f"inputs/files{path}": it.source.read(it.recipe.files[path]) for path in it.elsewhere}
    files |= {f"workspace{path.removeprefix(it.root)}": it.source.read(name) for path, name in taken.items()}
    files[f"workspace/{it.script}"] = _first_script(it)
    files |= {f"judge/{name}": it.source.read(name) for name in it.source.names if name.startswith("tests/")}
    files["judge/judge.py"] = it.driver().encode()
    return Imported(files, tuple(_mapped(it)), tuple(_left_out(it)), tuple(_findings(it)))


def _first_script(it: _Task) -> bytes:
    if it.request.program is None:
        return _SCRIPT.format(workdir=it.recipe.workdir).encode()
    if it.request.program not in it.source.names:
        raise TaskError(
            f"{it.source.folder / it.request.program}: is not there, or is a link; name a file of the folder"
        )
    return it.source.read(it.request.program)


def _config(source: Source) -> dict[str, Any]:
    text = source.text("task.toml")  # what it raises says what is wrong itself
    try:
        return bounded_toml.loads(text)
    except ValueError as error:
        raise TaskError(f"{source.folder / 'task.toml'}: is not TOML ({shown(str(error))}); mend it") from None
    except RecursionError:
        raise TaskError(f"{source.folder / 'task.toml'}: is nested too deep to be read; make it flatter") from None


def _refuse_what_cannot_run(source: Source, config: dict[str, Any]) -> None:
    composed = next((f"environment/{name}" for name in _COMPOSE if f"environment/{name}" in source.names), "")
    environment = section(config, "environment")
    why = ""
    if composed:
        why = f"{composed} wants several containers that talk to each other, and a chamber has no network"
    elif config.get("steps"):
        why = "task.toml has several steps with tests between them; import each as a task of its own"
    elif environment.get("os") == "windows":
        why = "it is for Windows, and chambers are Linux"
    elif environment.get("mcp_servers"):
        why = "its agent needs servers beside it, and a chamber has no network"
    if why:
        raise TaskError(f"{source.folder}: {why}")


def _root(workdir: str, source: Source) -> str:
    """The folder above it that is not part of every machine."""
    if not _PATH.fullmatch(workdir):  # it stands in lines for the shell
        raise TaskError(f"{source.folder}: works in {shown(workdir)}; use letters, digits, and . _ - in its name")
    parts = workdir.strip("/").split("/")
    if parts[0] in _SHARED_PARENTS and len(parts) == 1:
        parts = [""]
    parts = parts[: 2 if parts[0] in _SHARED_PARENTS else 1]
    root = f"/{'/'.join(parts)}"
    if root in ("/", "/usr", "/etc", "/bin", "/lib", "/dev", "/proc", "/sys", "/tmp", "/work", "/inputs"):  # noqa: S108
        raise TaskError(
            f"{source.folder}: works in {shown(workdir)}, which is the machine's own and read-only in a chamber; give"
            f" {_DOCKERFILE} a WORKDIR like /app"
        )
    return root


def _link(path: str, to: str) -> str:
    return f"rm -rf {path} && ln -s {to} {path}"


def _input_link(path: str) -> str:
    return f"mkdir -p {dirname(path)} && ln -sfn /inputs/files{path} {path}"


def _image(name: str, packages: tuple[list[str], list[str]], run: list[str]) -> list[str]:
    apt, pip = packages
    apt, pip = list(dict.fromkeys(apt)), one_each(pip)
    return [
        "",
        f"[{name}] # with links from the paths that the tests know",
        *([f"apt = {toml_list(apt)}"] if apt else []),
        *([f"pip = {toml_list(pip)}"] if pip else []),
        f"run = {toml_list(run)}",
    ]


def _table(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"{toml_text(name)} = {toml_text(it)}" for name, it in values.items()) + "}"


def _texts(table: dict[str, Any]) -> dict[str, str]:
    return {str(name): it for name, it in table.items() if isinstance(it, str)}


def _variables(recipe: Recipe, config: dict[str, Any]) -> dict[str, str]:
    """What the tests get."""
    return {**recipe.env, **_texts(section(section(config, "verifier"), "env"))}


def _mapped(it: _Task) -> list[str]:
    started = f"it starts as {it.request.program}" if it.request.program else "it starts empty"
    lines = [
        f"instruction.md is the statement; {it.root} is the workspace, all of it editable",
        f"{it.script} stands for what an agent types, and runs in {it.recipe.workdir}; {started}",
        f"{SCRIPT} is the judge, unchanged; the metric is {it.metric}, higher is better",
        *([f"files outside of {it.root} are inputs, read-only: {', '.join(it.elsewhere[:3])}"] * bool(it.elsewhere)),
        f"limits.wall is {it.seconds('agent'):g}s as agent.timeout_sec, judge.limits.wall {it._judge_wall():g}s",
    ]
    if packages := sorted({*it.recipe.apt, *it.recipe.pip, *it.tests.apt, *it.tests.pip}):
        lines.append(f"packages that Dockerfile and tests install: {', '.join(packages)}")
    return lines


def _left_out(it: _Task) -> list[str]:
    lines = [f"FROM {shown(it.recipe.base)}: the image is Blastdoor's own; image.base takes another that you have"]
    image = section(it.config, "environment").get("docker_image")
    if image and isinstance(image, str):
        lines[0] = f"docker_image {shown(image)}: the image is Blastdoor's own, with the Dockerfile's packages"
    lines += it.recipe.left_out
    lines += ["the network, which tests and agents have there: what they install is in the image"]
    if any(name.startswith("solution/") for name in it.source.names) and not it.request.program:
        lines.append("solution/, which nobody who searches may see; --program solution/solve.sh starts from it")
    return lines


def _findings(it: _Task) -> list[str]:
    if not it.tests.why_shared:
        return ["by reading, the tests only look at files, so they run after the candidate is dead (tier data)"]
    return [
        f"{it.tests.why_shared}: so candidate and tests share a chamber (tier shared), and a candidate can forge its"
        " reward"
    ]
