"""The measurement itself: real sockets, every byte counted, totals that come out."""

import pytest

from syndic_lab.bench.secure import sum as secure_sum


@pytest.mark.bench
def test_a_sum_over_sockets_counts_its_bytes_and_opens_the_total() -> None:
    outcome = secure_sum._run_over_sockets(5, 2)
    # 104 draws around the truth: far from the mean square of counts without the sum, about 48^2 rows
    assert outcome.stated_error / 2 < outcome.error < 2 * outcome.stated_error
    # a key, those of 4 neighbours, 104 masked values; envelopes are at most 300 bytes a message
    least = 5 * (32 + 4 * 32 + 104 * 13 // 8)
    assert least < outcome.bytes < least + 5 * 6 * 300


def test_the_coordinator_opens_with_silent_parties() -> None:
    (row,) = secure_sum._coordinator(60, 7)
    assert "3 of them silent" in row.row
    assert row.value > 0


@pytest.mark.parametrize(("parties", "length"), [(5, 10), (100, 1000)])
def test_bytes_of_a_party_grow_with_neighbours_and_length(parties: int, length: int) -> None:
    _, sent = secure_sum._one_party(parties, length)
    assert sent.baseline == 4 * length
    assert sent.value > 4 * length
