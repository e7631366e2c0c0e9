"""A dealer of secure products that changes what it sends, for suites of attacks on one kind of proof."""

from collections.abc import Callable
from typing import Any

from products import coordinate
from syndic.errors import RefusedError
from syndic.study import Study

Lie = Callable[[Any, str, str, Any], Any]


def unchanged(dealer: Any, step: str, name: str, message: Any) -> Any:
    return message


class LyingDealer:
    """A coordinator that changes what it sends; it keeps what it dealt and heard."""

    def __init__(self, carrier: Any, lie: Lie = unchanged) -> None:
        self.carrier, self.lie = carrier, lie
        self.sent: dict[tuple[str, str], Any] = {}
        self.heard: dict[tuple[str, str], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.carrier, name)

    def ask(self, step: Any, message: Any, **more: Any) -> Any:
        asked = message if isinstance(message, dict) else dict.fromkeys(self.carrier.members, message)
        changed = {name: self.lie(self, step.__name__, name, one) for name, one in asked.items()}
        answers = self.carrier.ask(step, changed, **more)
        for name, heard in answers.items():
            self.sent[step.__name__, name], self.heard[step.__name__, name] = changed[name], heard
        return answers


def told(lie: Callable[[Any, Any], Any]) -> Lie:
    """Return a dealer's lie to p1, when it multiplies."""

    def lies(dealer: Any, step: str, name: str, message: Any) -> Any:
        return lie(dealer, message) if (step, name) == ("product_multiplied", "p1") else message

    return lies


def accepted(study: Study, dealer: LyingDealer, refusal: str) -> bool:
    """Run the study with a lying dealer; return whether it came to its end, and check that a refusal opened nothing."""
    found = ""
    try:
        coordinate(study, dealer)
    except RefusedError as error:
        found = str(error)
    assert not found or found.startswith(refusal)
    assert bool(dealer.carrier.members["p1"].drawn) == (not found)
    return not found
