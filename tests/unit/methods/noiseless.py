"""Rounds of vertical methods without noise, for suites that hold their arithmetic against exact counts."""

import numpy as np
import pytest
from numpy.typing import NDArray

from syndic.methods.synthesis.account import RoundNoise
from syndic.methods.table_noise import TableNoise
from syndic.mpc.coins import _Tossed
from syndic.random import Randomness


def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away."""

    def whole(self: RoundNoise | TableNoise, values: NDArray[np.int64], randomness: Randomness) -> NDArray[np.int64]:
        del randomness
        return values * self.scale

    monkeypatch.setattr(RoundNoise, "apply", whole)
    monkeypatch.setattr(TableNoise, "apply", whole)
    monkeypatch.setattr(_Tossed, "noise_shares", lambda *_: {})
