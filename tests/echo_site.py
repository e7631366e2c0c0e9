"""A site that answers anything, for tests of the way there and back."""

import logging

from syndic.runtime.flare_site import Site

SECRET = "patient-4711-has-" + "measles"


class EchoSite(Site):
    """Returns bytes reversed; fails with a secret in the text and in the log when asked to."""

    def __init__(self, home: str) -> None:
        super().__init__()
        del home

    def most(self, study: str) -> int:
        if study == "fail early":
            raise ValueError(SECRET)
        return 10**9

    def answer(self, study: str, data: bytes) -> bytes:
        if study == "fail":
            logging.getLogger("syndic.party").error("about to fail: %s", SECRET)
            logging.getLogger("nvflare").error("the engine's own log: %s", SECRET)
            raise ValueError(SECRET)
        return data[::-1]
