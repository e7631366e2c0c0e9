"""The files that coordinator and parties exchange before a run. Nothing in them is secret."""

from typing import Final

from syndic.document import Document
from syndic.errors import InputError
from syndic.kernel import Member, PublicIdentity

SERVER_NAME: Final = "syndic-server"
# the engine tells the server from the sites by these names
_TAKEN: Final = frozenset({"server", SERVER_NAME})


def check_name(name: str) -> str:
    """Return the name if it is valid for a party of a study; raise `InputError` otherwise."""
    try:
        return _checked(name)
    except ValueError as error:
        raise InputError(str(error)) from None


def _checked(name: str) -> str:
    if name.lower() in _TAKEN:
        raise ValueError(f"name ({name!r}) belongs to the server: choose another one")
    return Member(name=name).name


class Request(Document):
    """A party's request for admission: its name, its certificate request, and its identity for study files."""

    party: str
    certificate_request: str
    identity: str
    syndic: str

    def __post_init__(self) -> None:
        """Check the name and the identity as a study does."""
        _checked(self.party)
        PublicIdentity.read(self.identity)


class Approval(Document):
    """A coordinator's approval of a party: its certificate, the federation's root, and the server's address."""

    party: str
    certificate: str
    root: str
    federation: str
    host: str
    port: int
    syndic: str


class Federation(Document):
    """The name and address of a federation."""

    name: str
    host: str
    port: int


class Admitted(Document):
    """One admitted party: its certificate and expiry, the previous certificate, and its identity.

    The previous certificate is valid until the new one is installed; a removed party has none.
    """

    party: str
    certificate_sha256: str
    expires: str
    identity: str
    former_sha256: str = ""
