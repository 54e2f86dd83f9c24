"""Commands that show a campaign, and ask whoever works on it for something. None of them runs one."""

from orchestrator.views.campaign import (
    actions,
    apply,
    diff,
    export,
    ledger,
    logs,
    pictures,
    playbook,
    promotion,
    report,
    show,
    stalls,
    status,
    steer,
)

commands = (
    status.command,
    *pictures.commands,
    show.command,
    diff.command,
    logs.command,
    report.command,
    stalls.command,
    export.command,
    apply.command,
    ledger.command,
    playbook.command,
    *actions.commands,
    steer.command,
    *promotion.commands,
)
