"""A process that product code starts gets an environment that was built for it, by name (T62)."""

import ast
from collections.abc import Iterator

FOLDERS = ("sandbox", "orchestrator")
# The user's own words behind `blastdoor up` run as the user's shell would run them, and a campaign that is resumed at
# the page asks providers in the user's name.
OWN = ("orchestrator/machine/engine.py", "orchestrator/views/page/resuming.py")
STARTERS = {
    *("create_subprocess_exec", "create_subprocess_shell", "Popen", "getoutput", "getstatusoutput"),
    *("check_call", "check_output", "system", "popen", "posix_spawn", "posix_spawnp", "fork", "forkpty"),
    *("execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "execlpe", "spawnv", "spawnve", "spawnl"),
    *("ProcessPoolExecutor", "Process", "subprocess_exec", "subprocess_shell"),
}
MODULES = {"subprocess", "os", "asyncio", "multiprocessing", "pty", "concurrent"}


def findings(name: str, source: str) -> Iterator[tuple[int, str]]:
    """Starts without `env=child_environment(…)`. Guests are programs inside chambers, whose environment is built."""
    if name in OWN or "/guest/" in name or not any(word in source for word in (*STARTERS, "subprocess")):
        return
    for node in starts(ast.parse(source)):
        if not any(it.arg == "env" and _is_built(it.value, source) for it in node.keywords):
            yield node.lineno, "give it env=child_environment(…) of sandbox/environment.py"


def _is_built(value: ast.expr, text: str) -> bool:
    """By the function itself, or under a name that the module gives what it made."""
    made = "child_environment("
    return ast.unparse(value).startswith(made) or (isinstance(value, ast.Name) and f"\n{value.id} = {made}" in text)


def starts(tree: ast.AST) -> Iterator[ast.Call]:
    """`subprocess.run(…)`, `create_subprocess_exec(…)` and the like, by whatever name a module was imported."""
    names = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).partition(".")[0] in MODULES
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        words = _dotted(node.func)
        if words[0] in names and (words[-1] in STARTERS or words[-2:] == ["subprocess", "run"] or words == ["run"]):
            yield node


def _dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else [""]
