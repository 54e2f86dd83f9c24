"""optuna-dashboard as its users have it, in an environment of its own: it is compared with, and no dependency."""

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PACKAGES = ("optuna-dashboard==0.21.0", "optuna==5.0.0")
# Its plot of the history, with dots in it.
PAINTED = "document.querySelector('.js-plotly-plot .scatterlayer .point, .js-plotly-plot .gl-canvas')"
_SERVER = """
import random, sys
import optuna
from optuna_dashboard import run_server
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = optuna.storages.InMemoryStorage()
study = optuna.create_study(storage=storage, study_name="long", direction="maximize")
space = {"x": optuna.distributions.FloatDistribution(0, 1), "y": optuna.distributions.IntDistribution(1, 1000)}
draw = random.Random(1)
for _ in range(int(sys.argv[1])):
    point = {"x": draw.random(), "y": draw.randint(1, 1000)}
    study.add_trial(optuna.trial.create_trial(params=point, distributions=space, value=draw.random()))
run_server(storage, host="127.0.0.1", port=int(sys.argv[2]))
"""


def install(folder: Path) -> Path:
    """The Python that has it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    subprocess.run([str(python), *words], check=True)
    return python


class Optuna:
    """Its server with a study of so many trials in memory."""

    def __init__(self, python: Path, trials: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/dashboard/studies/0"
        self._process = subprocess.Popen(
            [str(python), "-c", _SERVER, str(trials), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while self._process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/dashboard/", timeout=60).close()
                return
            time.sleep(0.2)
        raise RuntimeError("optuna-dashboard did not start")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)
