"""Send calls to many parties in parallel, one thread for each."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed

from syndic.kernel import Delivery

Exchange = Callable[[str, bytes, float], bytes | str]
"""A function of a party, its call and a deadline that returns the reply, or the reason why there is none."""


def gather(
    calls: Mapping[str, bytes],
    exchange: Exchange,
    *,
    seconds: float,
    arrived: Callable[[int], None],
    at_once: int,
) -> Delivery:
    """Send all calls, at most `at_once` at a time, and collect the replies that arrive in time."""
    deadline = time.monotonic() + seconds
    replies: dict[str, bytes] = {}
    silent: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=min(at_once, len(calls))) as pool:
        waiting = {pool.submit(exchange, party, data, deadline): party for party, data in calls.items()}
        for future in as_completed(waiting):
            outcome = future.result()
            if isinstance(outcome, bytes):
                replies[waiting[future]] = outcome
            else:
                silent[waiting[future]] = outcome
            arrived(len(replies))
    return Delivery(replies=replies, silent=silent)
