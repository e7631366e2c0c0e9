"""Sites for tests: one that answers everything, and one without Syndic's own access checks."""

import logging
import sys

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from syndic.runtime.flare.site import Site

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


class Unguarded(FLComponent):  # type: ignore[misc]  # the engine's classes are not typed
    """Only says that the site is connected."""

    def __init__(self, home: str) -> None:
        super().__init__()
        del home

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        del fl_ctx
        if event_type == EventType.SYSTEM_START:
            sys.stdout.write("connected; does what the engine does\n")
            sys.stdout.flush()
