"""Attempts as steps of a run in Weights & Biases, written to a folder; `wandb sync` uploads it when the user wants."""

import importlib.util
import os
from pathlib import Path
from typing import Any, ClassVar

from orchestrator.notify.base import News, NotifierContext, Topic


class Wandb:
    """`where` is a folder. Nothing is sent to anybody. A session is a run of its own there: offline, none can go on."""

    topics: ClassVar = frozenset({Topic.ATTEMPT, Topic.CHAMPION, Topic.STOPPED})
    variables: ClassVar = ("WANDB_*",)

    def __init__(self, context: NotifierContext) -> None:
        # It would send its own faults to its makers.
        os.environ["WANDB_ERROR_REPORTING"] = "false"
        import wandb

        folder = Path(context.where)
        folder.mkdir(parents=True, exist_ok=True)
        # What it says of the machine and of the folder that it runs in is nobody's business.
        quiet = wandb.Settings(
            silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True, x_disable_meta=True
        )
        self._run = wandb.init(
            mode="offline",
            dir=str(folder),
            project=f"blastdoor-{context.task}",
            group=f"{context.campaign}-{context.run}",
            name=f"{context.task} run {context.run}",
            settings=quiet,
        )
        self._run.define_metric("attempt")
        self._run.define_metric("*", step_metric="attempt")

    @staticmethod
    def check(where: str) -> None:
        if importlib.util.find_spec("wandb") is None:
            raise ValueError("Weights & Biases is not installed; pip install 'blastdoor[wandb]'")
        if "://" in where:
            raise ValueError("wandb needs a folder; `wandb sync` uploads what is in it")

    def tell(self, news: News) -> None:
        data: dict[str, Any] = news.data
        match news.topic:
            case Topic.ATTEMPT:
                values = {**data["metrics"], "usd": data["usd"], "seconds": data["seconds"]}
                self._run.log({"attempt": data["number"], "node": news.node, "ending": data["ending"], **values})
            case Topic.CHAMPION:
                self._run.summary.update({"best": news.node, **{f"best {k}": v for k, v in data["metrics"].items()}})
            case Topic.STOPPED:
                self._run.summary["stopped"] = data["reason"]

    def close(self) -> None:
        self._run.finish()
