"""From a job to the shell files that PID 1 runs."""

import shlex

from sandbox.job import Job


def scripts(job: Job) -> dict[str, bytes]:
    """What PID 1 runs: shell files beside the candidate's own."""
    files = {"run.sh": _script(job.command, job)}
    return files | {"build.sh": _script(job.build, job)} if job.build else files


def _script(command: tuple[str, ...], job: Job) -> bytes:
    """A shell line that becomes the command. Everything in it is quoted: names and values stay data."""
    variables = {
        "HOME": "/work/tmp",
        "USER": "nobody",
        "LOGNAME": "nobody",
        "TMPDIR": "/work/tmp",
        "BLASTDOOR_OUT": "/work/out",
        **job.env,
    }
    exports = " ".join([f"{name}={shlex.quote(value)}" for name, value in variables.items()])
    folder = shlex.quote(f"/work/src/{job.workdir}")
    return f"cd {folder} && export {exports} && exec {shlex.join(command)}\n".encode()
