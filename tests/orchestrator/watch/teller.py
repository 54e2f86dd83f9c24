"""Tells a detector a stream in few words."""

from orchestrator.watch import Config, Hold, Kind, Pulse, Signal, StallWatch


class Teller:
    """A clock of its own, and one call at a time unless another is named."""

    def __init__(self, config: Config | None = None) -> None:
        self.watch = StallWatch(config or Config(), 0.0)
        self.now = 0.0
        self.used_s = 0.0

    def say(self, kind: Kind, call: str = "a", **more: object) -> "Teller":
        self.watch.hear(Signal(at=self.now, kind=kind, call=call, **more))  # type: ignore[arg-type]
        return self

    def after(self, seconds: float) -> "Teller":
        self.now += seconds
        return self

    def stream(self, seconds: float, rate: float, call: str = "a", every: float = 0.5) -> "Teller":
        """Tokens at a rate, in equal portions; fractions are saved up."""
        owed = 0.0
        for _ in range(round(seconds / every)):
            self.now += every
            owed += rate * every
            if int(owed):
                self.say(Kind.TOKENS, call, tokens=int(owed))
                owed -= int(owed)
        return self

    def call(self, tokens: int = 100, call: str = "a") -> "Teller":
        """A whole call, at once."""
        return self.say(Kind.REQUESTED, call).say(Kind.TOKENS, call, tokens=tokens).say(Kind.FINISHED, call)

    def pings(self, seconds: float, every: float = 10.0, call: str = "a") -> "Teller":
        for _ in range(round(seconds / every)):
            self.after(every).say(Kind.PING, call)
        return self

    def cpu(self, seconds: float, share: float = 1.0, every: float = 5.0) -> "Teller":
        """The chamber uses so much of a core."""
        for _ in range(round(seconds / every)):
            self.now += every
            self.used_s += share * every
            self.say(Kind.CPU, "", cpu_s=self.used_s)
        return self

    def hold(self, hold: Hold) -> "Teller":
        return self.say(Kind.HELD, "", hold=hold)

    def release(self, hold: Hold) -> "Teller":
        return self.say(Kind.RELEASED, "", hold=hold)

    def step(self, called: str, answer: str, number: int = 0) -> "Teller":
        """One call that ends with a tool, and the tool's answer in the next request."""
        call = f"{called}{number}"
        self.say(Kind.REQUESTED, call).say(Kind.TOKENS, call, tokens=50).say(Kind.TOOL_CALLED, call, digest=called)
        return self.say(Kind.FINISHED, call).after(1.0).say(Kind.TOOL_ANSWERED, "", digest=answer)

    def pulse(self) -> Pulse:
        return self.watch.pulse(self.now)
