"""Figure 1 of Jayaraman et al. (NeurIPS 2018), digitised: KDDCup99, 1000 parties, every 100 iterations.

The points at position 0 are left out: they are not the first update.
"""

from collections.abc import Mapping
from typing import Final

POSITIONS: Final = tuple(range(100, 1500, 100))

GAPS: Final[Mapping[str, tuple[float, ...]]] = {
    "Pathak": (819, 845, 805, 789, 799, 795, 815, 801, 842, 854, 834, 801, 828, 814),
    "Local Out P": (1.34, 1.25, 1.16, 1.30, 1.26, 1.25, 1.15, 1.26, 1.18, 1.17, 1.19, 1.10, 1.19, 1.08),
    "Local Grad P": (1.19, 1.85, 2.19, 2.57, 3.08, 3.10, 3.06, 3.33, 3.41, 3.44, 3.42, 3.71, 4.20, 4.21),
    "Local Obj P": (2.62, *(13 * (2.64,))),
    "Rajkumar-Agarwal": (
        *(0.0254, 0.00902, 0.00423, 0.00239, 0.00179, 0.00164, 0.00166),
        *(0.00179, 0.00197, 0.00217, 0.00241, 0.00253, 0.00271, 0.00278),
    ),
    "MPC Out P": (
        *(0.0326, 0.0149, 0.0093, 0.00678, 0.00553, 0.00473, 0.00439),
        *(0.00415, 0.00397, 0.00403, 0.00383, 0.00364, 0.00369, 0.00341),
    ),
    "MPC Grad P": (
        *(0.0279, 0.0109, 0.00566, 0.0045, 0.00391, 0.00344, 0.00381),
        *(0.00382, 0.00376, 0.00382, 0.00362, 0.00327, 0.0034, 0.00394),
    ),
}

LOSSES: Final[Mapping[str, tuple[float, ...]]] = {
    "Pathak": (0.494, 0.445, 0.454, 0.458, 0.498, 0.498, 0.471, 0.469, 0.494, 0.527, 0.517, 0.457, 0.487, 0.511),
    "Local Out P": (0.205, 0.188, 0.160, 0.213, 0.176, 0.171, 0.161, 0.142, 0.147, 0.179, 0.183, 0.148, 0.166, 0.148),
    "Local Grad P": (
        *(0.0601, 0.0276, 0.0256, 0.0328, 0.0242, 0.0386, 0.0708),
        *(0.042, 0.0591, 0.027, 0.0422, 0.0518, 0.0305, 0.036),
    ),
    "Local Obj P": (0.0474, *(13 * (0.0475,))),
    "Rajkumar-Agarwal": (
        *(0.0026, 0.000445, 0.000406, 0.000244, 0.000408, 0.000559, 0.000683),
        *(0.000634, 0.000629, 0.00069, 0.000869, 0.000926, 0.00096, 0.000973),
    ),
    "MPC Out P": (
        *(0.0129, 0.00349, 0.00133, 0.000868, 0.000687, 0.000474, 0.000485),
        *(0.000491, 0.000384, 0.000485, 0.000407, 0.000416, 0.000398, 0.0004),
    ),
    "MPC Grad P": (
        *(0.00512, 0.000495, 0.000386, 0.000364, 0.000371, 0.00035, 0.000313),
        *(0.000374, 0.000811, 0.000996, 0.000957, 0.000439, 0.000554, 0.000664),
    ),
}

# Figure 2, KDDCup98, 1000 parties: means of iterations 800 to 1400, losses as differences of mean squared errors
REGRESSION_GAPS: Final[Mapping[str, float]] = {
    "Pathak": 770.3, "Local Out P": 0.916, "Local Grad P": 2.61, "Local Obj P": 2.93,
    "Rajkumar-Agarwal": 0.0570, "MPC Out P": 0.159, "MPC Grad P": 0.0570,
}  # fmt: skip
REGRESSION_LOSSES: Final[Mapping[str, float]] = {
    "Pathak": 323.7, "Local Out P": 1.31, "Local Grad P": 0.775, "Local Obj P": 4.49,
    "Rajkumar-Agarwal": 0.422, "MPC Out P": 0.999, "MPC Grad P": 0.418,
}  # fmt: skip

# said in words of the appendix only: "of order", in every setting
ADULT_GAP: Final = 1e-2
ADULT_LOSS: Final = 1e-4
