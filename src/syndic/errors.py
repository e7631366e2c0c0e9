"""Every error Syndic raises on purpose.

An error says what, where and what to do. Only the text of a `PublicError` may leave a party: it is made
of the study's own words and numbers, never of a value read from a row. Anything else stays in the party's log.
"""

from typing import ClassVar


class SyndicError(Exception):
    """Base of every error raised on purpose; `exit_code` is what the command line ends with."""

    exit_code: int = 1


class PublicError(SyndicError):
    """An error whose text holds nothing private, so it may cross from a party to the coordinator."""

    code: ClassVar[str] = "error"


class InputError(PublicError):
    """A document, parameter or file is not usable as it stands."""

    code = "input"
    exit_code = 2

    def __init__(self, text: str, *, errors: tuple[str, ...] = ()) -> None:
        """Keep the text and, where a document has several errors, each of them by itself."""
        super().__init__(text)
        self.errors = errors


class BudgetError(PublicError):
    """A charge does not fit under a cap. Nothing was spent and no noise was drawn."""

    code = "budget"
    exit_code = 3


class RefusedError(PublicError):
    """A party will not answer this call: foreign study, malformed or oversized message, reused call id."""

    code = "refused"
    exit_code = 4


class PartyError(SyndicError):
    """What the coordinator raises when a party answered with an error or not at all."""

    exit_code = 4

    def __init__(self, text: str, *, exit_code: int = 4) -> None:
        """Tell who and why; `exit_code` is that of the parties' own errors where they agree."""
        super().__init__(text)
        self.exit_code = exit_code


class IntegrityError(SyndicError):
    """A ledger or a stored file is not what was written: changed, cut or out of order."""

    exit_code = 5


class MissingExtraError(SyndicError):
    """An optional library is not installed."""

    exit_code = 6

    def __init__(self, library: str, extra: str) -> None:
        """Say in one sentence which extra brings the missing library."""
        super().__init__(f"{library} is not installed: pip install 'syndic[{extra}]'")


class DoorError(SyndicError):
    """A step read rows and tried to answer without charging or masking. A fault in the protocol: nothing is sent."""
