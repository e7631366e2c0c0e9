"""Figure 2 (read off the authors' images, within 0.01) and Table 1 of Wu et al., UAI 2022."""

from collections.abc import Mapping
from typing import Final

SIZES: Final = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
EPSILONS: Final = (1.0, 0.3, 0.1)
DISTANCES: Final = (0.5, 0.2, 0.1)

# the chance, by epsilon and distance, that coefficients of RMGM are further off than that, for each size
RMGM: Final[Mapping[tuple[float, float], tuple[float, ...]]] = {
    (1.0, 0.5): (0, 0, 0, 0, 0, 0),
    (1.0, 0.2): (0.88, 0.65, 0.28, 0.02, 0, 0),
    (1.0, 0.1): (1, 1, 0.99, 0.95, 0.69, 0.07),
    (0.3, 0.5): (0.36, 0.05, 0, 0, 0, 0),
    (0.3, 0.2): (1, 0.98, 0.91, 0.70, 0.30, 0.03),
    (0.3, 0.1): (1, 1, 1, 1, 0.99, 0.95),
    (0.1, 0.5): (0.97, 0.79, 0.30, 0.03, 0, 0),
    (0.1, 0.2): (1, 1, 0.99, 0.97, 0.88, 0.66),
    (0.1, 0.1): (1, 1, 1, 1, 1, 1),
}
# BGM returns almost nothing, so this is the chance that the true coefficients are longer than that
BGM: Final[Mapping[float, tuple[float, ...]]] = {
    0.5: (0, 0, 0, 0, 0, 0),
    0.2: (0.27, 0.27, 0.26, 0.23, 0.24, 0.24),
    0.1: (1, 1, 1, 1, 1, 1),
}
DGM: Final = 1.0
# mean distances of RMGM that the figure shows at its two ends
MEANS: Final[Mapping[tuple[float, int], float]] = {
    (1.0, 10_000): 0.27,
    (1.0, 3_000_000): 0.08,
    (0.3, 10_000): 0.47,
    (0.3, 3_000_000): 0.15,
    (0.1, 10_000): 1.0,
    (0.1, 3_000_000): 0.22,
}
BGM_MEAN: Final = 0.18

OLS: Final[Mapping[str, float]] = {
    "insurance": 0.008,
    "bike": 0.017,
    "superconductor": 0.009,
    "gpu": 0.007,
    "music": 0.011,
}
# for each epsilon DGM, RMGM, BGM
LOSSES: Final[Mapping[str, tuple[tuple[float, float, float], ...]]] = {
    "insurance": ((0.7015, 0.0791, 0.0805), (0.7550, 0.0782, 0.0850), (0.7263, 0.0793, 0.0832)),
    "bike": ((0.8105, 0.0581, 0.0691), (0.9080, 0.0711, 0.0703), (0.8792, 0.0700, 0.0707)),
    "superconductor": ((0.9794, 0.0659, 0.0670), (1.0075, 0.0707, 0.0704), (0.9220, 0.0699, 0.0704)),
    "gpu": ((0.6953, 0.0137, 0.0158), (0.7843, 0.0160, 0.0160), (0.7822, 0.0165, 0.0160)),
    "music": ((1.0167, 0.0202, 0.7194), (1.6462, 0.1039, 0.7479), (1.5583, 0.5654, 0.7508)),
}


def loss(data: str, method: str, epsilon: float) -> float:
    """Return a loss of Table 1."""
    return LOSSES[data][EPSILONS.index(epsilon)][("dgm", "rmgm", "bgm").index(method)]
