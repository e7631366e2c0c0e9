"""How much an evaluation computes: the quick scores by default, or all of them."""

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, kw_only=True)
class Effort:
    """Largest numbers of pairs and triples of columns, and of rows for models; `full` adds the slow scores."""

    full: bool
    sets: dict[int, int]
    rows: int
    propensity_rows: int
    regression_rows: int

    @property
    def note(self) -> str:
        """What was sampled, in words."""
        words = f"at most {self.sets[2]} pairs and {self.sets[3]} triples of columns, drawn at random where there are "
        words += f"more; models train on at most {self.rows:,} rows and are tested on at most {self.rows:,} others"
        if self.full:
            return words
        return f"quick scores: {words}. --full (full=True) adds private baselines, more models, pMSE by trees"


QUICK: Final = Effort(full=False, sets={2: 150, 3: 50}, rows=20_000, propensity_rows=2_000, regression_rows=5_000)
FULL: Final = Effort(full=True, sets={2: 300, 3: 300}, rows=200_000, propensity_rows=5_000, regression_rows=20_000)
