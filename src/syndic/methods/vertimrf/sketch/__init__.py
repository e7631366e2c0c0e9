"""Sketches and randomised response of the same people's columns: what they tell, and what they really cost.

Pure functions: arrays in, arrays out. Whoever sends `encode`'s result has charged `sketch_cost` before.
"""

from syndic.methods.vertimrf.sketch.cells import Decoder, cell_table, complements, onto_simplex, union
from syndic.methods.vertimrf.sketch.compose import Bracket, delta_of
from syndic.methods.vertimrf.sketch.cost import phantoms_needed, sketch_cost, sketch_delta
from syndic.methods.vertimrf.sketch.encode import encode, largest_ranks, phantom_ranks
from syndic.methods.vertimrf.sketch.estimate import cell_error, debias, harmonic, likeliest, printed, relative_sd
from syndic.methods.vertimrf.sketch.hashing import People, person_digests, person_words, value_maxima
from syndic.methods.vertimrf.sketch.loss import LossLaw, loss_law
from syndic.methods.vertimrf.sketch.oracle import decode_counts, decoded_table, oracle, oracle_events, printed_oracle
from syndic.methods.vertimrf.sketch.plan import (
    SketchPlan,
    floor_for,
    printed_epsilon,
    printed_plan,
    rank_thresholds,
    ranks_of,
)

__all__ = [
    "Bracket",
    "Decoder",
    "LossLaw",
    "People",
    "SketchPlan",
    "cell_error",
    "cell_table",
    "complements",
    "debias",
    "decode_counts",
    "decoded_table",
    "delta_of",
    "encode",
    "floor_for",
    "harmonic",
    "largest_ranks",
    "likeliest",
    "loss_law",
    "onto_simplex",
    "oracle",
    "oracle_events",
    "person_digests",
    "person_words",
    "phantom_ranks",
    "phantoms_needed",
    "printed",
    "printed_epsilon",
    "printed_oracle",
    "printed_plan",
    "rank_thresholds",
    "ranks_of",
    "relative_sd",
    "sketch_cost",
    "sketch_delta",
    "union",
    "value_maxima",
]
