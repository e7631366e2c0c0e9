"""All errors that Syndic raises on purpose.

An error says what is wrong, where, and what to do. Only the text of a `PublicError` may leave a party: it contains
words and numbers of the study, never a value read from a row. All other texts stay in the party's log.
"""

from typing import ClassVar


def printable(text: str) -> str:
    """Return a text of somebody else on one line, without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


class SyndicError(Exception):
    """Base of every error raised on purpose; `exit_code` is the exit status of the command line."""

    exit_code: int = 1


class PublicError(SyndicError):
    """An error whose text contains nothing private, so a party may send it to the coordinator."""

    code: ClassVar[str] = "error"


class InputError(PublicError):
    """A document, parameter or file is not valid."""

    code = "input"
    exit_code = 2

    def __init__(self, text: str, *, errors: tuple[str, ...] = (), elsewhere: str = "") -> None:
        """Keep the text and, where a document has several errors, each of them by itself.

        `elsewhere` is the text for other organisations, without names of the party's own files.
        """
        super().__init__(text)
        self.errors = errors
        self.elsewhere = elsewhere


class BudgetError(PublicError):
    """A charge would exceed a cap. Nothing was spent and no noise was drawn."""

    code = "budget"
    exit_code = 3


class RefusedError(PublicError):
    """A party refuses this call: another study, a malformed or oversized message, or a reused call id."""

    code = "refused"
    exit_code = 4


class PartyError(SyndicError):
    """A party answered with an error or not at all; raised at the coordinator."""

    exit_code = 4

    def __init__(self, text: str, *, exit_code: int = 4) -> None:
        """Say which parties and why; `exit_code` is that of the parties' errors if they all have the same."""
        super().__init__(text)
        self.exit_code = exit_code


class IntegrityError(SyndicError):
    """A ledger or a stored file was changed, truncated or reordered after it was written."""

    exit_code = 5


class MissingExtraError(SyndicError):
    """An optional library is not installed."""

    exit_code = 6

    def __init__(self, library: str, extra: str) -> None:
        """Say which extra installs the missing library."""
        super().__init__(f"{library} is not installed: pip install 'syndic[{extra}]'")


class MethodError(SyndicError):
    """A fault in a method: a step read rows and would answer without charging or masking. Nothing is sent."""
