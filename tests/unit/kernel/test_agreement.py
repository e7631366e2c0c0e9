from datetime import UTC, datetime, timedelta, timezone

import pytest

from syndic.errors import RefusedError
from syndic.kernel import Agreement


@pytest.mark.parametrize(
    ("year", "hours", "told"), [(1, 14, r"0*1-01-01 00:00 UTC\+14:00"), (2000, 0, "2000-01-01 00:00 UTC")]
)
def test_an_expired_agreement_says_so_at_the_first_day_there_is(year: int, hours: int, told: str) -> None:
    zone = UTC if hours == 0 else timezone(timedelta(hours=hours))
    moment = datetime(year, 1, 1, tzinfo=zone)
    agreement = Agreement(run="1" * 64, party="north", syndic="1", signed_at=moment, expires=moment)
    with pytest.raises(RefusedError, match=f"expired on {told}"):
        agreement.check_time(datetime.now(UTC))
