"""What coordinator and parties send each other by post before anything runs. Nothing in it is secret."""

from typing import Final

from syndic.document import Document
from syndic.errors import InputError
from syndic.federation.flare_config import SERVER_NAME
from syndic.kernel import Member, PublicIdentity

# the engine tells the server from sites by these
_TAKEN: Final = frozenset({"server", SERVER_NAME})


def check_name(name: str) -> str:
    """Return a name that a study could give a party; raise `InputError` for any other."""
    try:
        return _checked(name)
    except ValueError as error:
        raise InputError(str(error)) from None


def _checked(name: str) -> str:
    if name.lower() in _TAKEN:
        raise ValueError(f"name ({name!r}) is that of the server: take another one")
    return Member(name=name).name


class Request(Document):
    """A party asks to be admitted: its name, its certificate request, and its identity for study files."""

    party: str
    certificate_request: str
    identity: str
    syndic: str

    def __post_init__(self) -> None:
        """Check the name and the identity as a study would."""
        _checked(self.party)
        PublicIdentity.read(self.identity)


class Approval(Document):
    """A coordinator admits a party: its certificate, the federation's root, and where the server is."""

    party: str
    certificate: str
    root: str
    federation: str
    host: str
    port: int
    syndic: str


class Federation(Document):
    """What a coordinator's folder is about."""

    name: str
    host: str
    port: int


class Admitted(Document):
    """One party on a coordinator's list: its certificate, until when, the one before it, and its identity.

    The one before serves until the new one is installed; a party that was removed first starts without it.
    """

    party: str
    certificate_sha256: str
    expires: str
    identity: str
    former_sha256: str = ""
