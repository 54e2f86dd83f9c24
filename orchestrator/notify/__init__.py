"""News of a campaign for the places where people already look: a webhook, a command, a tracking store.

    events -> Reporter -> News -> Post (a queue) -> a process of its own -> notifiers

A notifier may be slow, hang or crash: it lives in another process, and the campaign only puts news into a queue that
is never waited for. News has ids, numbers and names of the task, and no word of a candidate, a model or a log.
"""

from orchestrator.notify.base import News, Notifier, NotifierContext, Topic

__all__ = ["News", "Notifier", "NotifierContext", "Topic"]
