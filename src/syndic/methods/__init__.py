"""The methods, grouped by purpose. `AnyMethod` is the closed list of methods that a study may name."""

from syndic.methods.align import Align as Align
from syndic.methods.comparison.distdiffgen import Distdiffgen as Distdiffgen
from syndic.methods.comparison.dplt import Dplt as Dplt
from syndic.methods.comparison.glued import Glued as Glued
from syndic.methods.comparison.vertigan import Vertigan as Vertigan
from syndic.methods.describe.describe import Describe as Describe
from syndic.methods.estimate.estimate import Estimate as Estimate
from syndic.methods.histogram.average import Average as Average
from syndic.methods.histogram.homm import Homm as Homm
from syndic.methods.histogram.marginals import Marginals as Marginals
from syndic.methods.learning.learn import Learn as Learn
from syndic.methods.regression.gram import Gram as Gram
from syndic.methods.regression.mixing import Mixing as Mixing
from syndic.methods.survival.survival import Survival as Survival
from syndic.methods.synthesis.synthesis import Synthesis as Synthesis
from syndic.methods.vertimrf.vertimrf import Vertimrf as Vertimrf

AnyMethod = (
    Align
    | Average
    | Describe
    | Distdiffgen
    | Estimate
    | Glued
    | Gram
    | Homm
    | Dplt
    | Marginals
    | Mixing
    | Learn
    | Survival
    | Synthesis
    | Vertigan
    | Vertimrf
)
