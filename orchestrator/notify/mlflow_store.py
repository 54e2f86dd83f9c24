"""Every attempt as a run in MLflow, below one run for the campaign's own."""

import importlib.util
import os
import re
from typing import Any, ClassVar

from orchestrator.notify.base import News, NotifierContext, Topic

# What MLflow takes as a name.
_NOT_A_NAME = re.compile(r"[^\w .:/-]")
_PARENT = "mlflow.parentRunId"


class Mlflow:
    """`where` is a tracking address as MLflow writes it: sqlite:///runs.db, http://host:5000."""

    topics: ClassVar = frozenset({Topic.ATTEMPT, Topic.CHAMPION, Topic.STOPPED})
    variables: ClassVar = ("MLFLOW_*",)

    def __init__(self, context: NotifierContext) -> None:
        # It would tell its makers how it is used.
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=context.where)
        self._experiment = self._experiment_of(context.task)
        self._tags = {"blastdoor.campaign": context.campaign, "blastdoor.run": str(context.run)}
        self._run = self._run_of(context)

    @staticmethod
    def check(where: str) -> None:
        if importlib.util.find_spec("mlflow") is None:
            raise ValueError("MLflow is not installed; pip install 'blastdoor[mlflow]'")
        if "://" not in where:
            raise ValueError("mlflow needs an address like sqlite:///runs.db or http://localhost:5000")

    def tell(self, news: News) -> None:
        match news.topic:
            case Topic.ATTEMPT:
                self._attempt(news)
            case Topic.CHAMPION:
                self._client.set_tag(self._run, "blastdoor.best", news.node)
                for name, value in _metrics(news).items():
                    self._client.log_metric(self._run, f"best {name}", value)
            case Topic.STOPPED:
                self._client.set_tag(self._run, "blastdoor.stopped", str(news.data["reason"])[:500])
                self._client.set_terminated(self._run, "FINISHED")

    def close(self) -> None:
        pass

    def _experiment_of(self, task: str) -> str:
        name = f"blastdoor {task}"
        known = self._client.get_experiment_by_name(name)
        return str(known.experiment_id if known else self._client.create_experiment(name))

    def _run_of(self, context: NotifierContext) -> str:
        """That of an earlier session, so that a resumed campaign stays one."""
        asked = " and ".join(f"tags.`{name}` = '{value}'" for name, value in self._tags.items())
        found = [it for it in self._client.search_runs([self._experiment], asked) if _PARENT not in it.data.tags]
        if found:
            self._client.update_run(found[0].info.run_id, status="RUNNING")
            return str(found[0].info.run_id)
        name = f"{context.task} run {context.run}"
        return str(self._client.create_run(self._experiment, tags=self._tags, run_name=name).info.run_id)

    def _attempt(self, news: News) -> None:
        data: dict[str, Any] = news.data
        tags = {**self._tags, _PARENT: self._run, "blastdoor.node": news.node, "blastdoor.ending": data["ending"]}
        tags |= {"blastdoor.kept": str(data["kept"]), "blastdoor.operator": data["operator"]}
        run = self._client.create_run(self._experiment, tags=tags, run_name=news.node).info.run_id
        for name, value in data["parameters"].items():
            self._client.log_param(run, _name(name), value)
        for name, value in {**_metrics(news), "usd": data["usd"], "seconds": data["seconds"]}.items():
            self._client.log_metric(run, name, value)
            self._client.log_metric(self._run, name, value, step=data["number"])
        self._client.set_terminated(run, "FINISHED" if data["ending"] == "scored" else "FAILED")


def _metrics(news: News) -> dict[str, float]:
    found: Any = news.data["metrics"]
    return {_name(name): value for name, value in found.items()}


def _name(text: str) -> str:
    return _NOT_A_NAME.sub("_", text)[:200]
