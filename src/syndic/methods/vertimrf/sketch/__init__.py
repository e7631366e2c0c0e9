"""Sketches and randomised response of the same people's columns: what they tell, and what they really cost.

Pure functions: arrays in, arrays out. Whoever sends `encode`'s result has charged `sketch_cost` before.
"""

from syndic.methods.vertimrf.sketch.cells import cell_table as cell_table
from syndic.methods.vertimrf.sketch.cost import sketch_cost as sketch_cost
from syndic.methods.vertimrf.sketch.cost import sketch_delta as sketch_delta
from syndic.methods.vertimrf.sketch.encode import encode as encode
from syndic.methods.vertimrf.sketch.hashing import People as People
from syndic.methods.vertimrf.sketch.hashing import person_digests as person_digests
from syndic.methods.vertimrf.sketch.plan import SketchPlan as SketchPlan
from syndic.methods.vertimrf.sketch.plan import printed_plan as printed_plan
