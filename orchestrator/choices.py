"""The one declaration of every choice that has a name: flags, settings, the task file and help take it from here.

A proposer is a factory, which is given a ProposerContext (proposers/base.py); an agent is a Preset (agents/presets.py).
A pruning rule is a factory, which is given a RuleContext (pruning/base.py), a parent rule one that is given a
ParentContext (population/base.py), a backend one that is given a BackendContext and makes a Provider (wiring/site.py).
An importer is a function from an ImportRequest to an Imported (importing/base.py), a notifier a factory that is given a
NotifierContext (notify/base.py).
Packages of others announce theirs in the same groups, see docs/plugins.md.
"""

from orchestrator.registry import Entry, Kind

_MAKING = "orchestrator.proposers.making"

# needs_space: proposes points of [parameters]. asks_a_model: with a key, an allowance and a playbook; it reads what a
# person steers. offers_several: of one asking, as many changes as model.proposals says. is_control: can run beside.
# has_arms: asks others, which may ask a model. takes_hints: of a profile of the baseline.
PROPOSERS = Kind(
    "proposer",
    "blastdoor.proposers",
    {
        "grid": Entry(f"{_MAKING}:grid", ("needs_space", "is_control")),
        "random": Entry(f"{_MAKING}:random", ("needs_space", "is_control")),
        "tpe": Entry(f"{_MAKING}:tpe", ("needs_space",)),
        "cmaes": Entry(f"{_MAKING}:cmaes", ("needs_space",)),
        "gp": Entry(f"{_MAKING}:gp", ("needs_space",)),
        "thompson": Entry(f"{_MAKING}:thompson", ("needs_space",)),
        "de": Entry(f"{_MAKING}:de", ("needs_space",)),
        "operators": Entry(f"{_MAKING}:operators", ("takes_hints",)),
        "mixed": Entry(f"{_MAKING}:mixed", ("needs_space", "takes_hints")),
        "hybrid": Entry(f"{_MAKING}:hybrid", ("has_arms", "takes_hints")),
        "llm": Entry(f"{_MAKING}:llm", ("asks_a_model", "offers_several")),
        "llm-params": Entry(f"{_MAKING}:llm_params", ("needs_space", "asks_a_model", "offers_several")),
        "agent": Entry("orchestrator.agents.presets:planned", ("asks_a_model",)),
        "inject": Entry(f"{_MAKING}:inject"),
    },
)

AGENTS = Kind(
    "agent",
    "blastdoor.agents",
    {
        "claude-code": Entry("orchestrator.agents.presets:CLAUDE_CODE"),
        "mini-swe-agent": Entry("orchestrator.agents.presets:MINI_SWE_AGENT"),
    },
)

# Their traits are the keys of [pruning] that mean something to them, beside those of all rules.
PRUNERS = Kind(
    "pruning rule",
    "blastdoor.pruners",
    {
        "median": Entry("orchestrator.pruning.making:median", ("warmup", "every")),
        "halving": Entry("orchestrator.pruning.making:halving", ("reduction", "least")),
        "wilcoxon": Entry("orchestrator.pruning.making:wilcoxon", ("warmup", "every", "threshold")),
        "curve": Entry("orchestrator.pruning.making:curve", ("warmup", "every", "threshold")),
    },
)

PARENTS = Kind(
    "parent rule",
    "blastdoor.parents",
    {
        name: Entry(f"orchestrator.population.making:{name}")
        for name in ("champion", "tasks", "tournament", "novelty", "archive", "drawn")
    },
)

# Where candidates run when nobody says anything, and where judges and agents do in any case.
OWN_ENGINE = "docker"
# On one's own machine, too; they share their images, and no engine is needed for any.
WITHOUT_DAEMON = ("runc", "crun", "runsc")

BACKENDS = Kind(
    "backend",
    "blastdoor.backends",
    {
        OWN_ENGINE: Entry("orchestrator.wiring.backends.docker:Docker"),
        "runc": Entry("orchestrator.wiring.backends.runc:Runc"),
        "crun": Entry("orchestrator.wiring.backends.runc:Crun"),
        "runsc": Entry("orchestrator.wiring.backends.runc:Runsc"),
        "modal": Entry("orchestrator.wiring.backends.modal:Modal"),
        "skypilot": Entry("orchestrator.wiring.backends.skypilot:SkyPilot"),
    },
)

IMPORTERS = Kind(
    "importer",
    "blastdoor.importers",
    {name: Entry(f"orchestrator.importing.{name}:read") for name in ("openevolve", "shinka", "evo", "harbor")},
)

NOTIFIERS = Kind(
    "notifier",
    "blastdoor.notifiers",
    {
        "webhook": Entry("orchestrator.notify.webhook:Webhook"),
        "command": Entry("orchestrator.notify.command:Command"),
        "mlflow": Entry("orchestrator.notify.mlflow_store:Mlflow"),
        "wandb": Entry("orchestrator.notify.wandb_run:Wandb"),
    },
)
