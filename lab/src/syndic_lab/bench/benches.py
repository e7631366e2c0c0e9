"""All benches by name, as `syndic bench NAME` runs them."""

from collections.abc import Callable, Iterator

from syndic_lab.bench.advise.run import rows as advise_rows
from syndic_lab.bench.align import rows as align_rows
from syndic_lab.bench.describe import rows as describe_rows
from syndic_lab.bench.erm.areas import rows as learn_rows
from syndic_lab.bench.erm.run import rows as erm_rows
from syndic_lab.bench.estimate.run import rows as estimate_rows
from syndic_lab.bench.growth.run import rows as growth_rows
from syndic_lab.bench.guard.run import rows as guard_rows
from syndic_lab.bench.homm.run import rows as homm_rows
from syndic_lab.bench.interactions import rows as interactions_rows
from syndic_lab.bench.interval.run import rows as interval_rows
from syndic_lab.bench.model.run import rows as model_rows
from syndic_lab.bench.noise import rows as noise_rows
from syndic_lab.bench.regression.accuracy import rows as gram_rows
from syndic_lab.bench.regression.run import rows as regression_rows
from syndic_lab.bench.row import Row
from syndic_lab.bench.scale import rows as scale_rows
from syndic_lab.bench.secure.run import rows as secure_rows
from syndic_lab.bench.sketch.run import rows as sketch_rows
from syndic_lab.bench.sources.run import rows as sources_rows
from syndic_lab.bench.survival import rows as survival_rows
from syndic_lab.bench.target import rows as target_rows
from syndic_lab.bench.vertical.plan import rows as vertical_rows
from syndic_lab.peers.run import rows as peers_rows

# Each takes `quick` and yields rows as they are measured.
BENCHES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "advise": advise_rows,
    "align": align_rows,
    "describe": describe_rows,
    "erm": erm_rows,
    "estimate": estimate_rows,
    "gram": gram_rows,
    "growth": growth_rows,
    "guard": guard_rows,
    "homm": homm_rows,
    "interactions": interactions_rows,
    "interval": interval_rows,
    "learn": learn_rows,
    "model": model_rows,
    "noise": noise_rows,
    "peers": peers_rows,
    "regression": regression_rows,
    "scale": scale_rows,
    "secure": secure_rows,
    "sketch": sketch_rows,
    "sources": sources_rows,
    "survival": survival_rows,
    "target": target_rows,
    "vertical": vertical_rows,
}
