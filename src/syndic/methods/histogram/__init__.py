"""Tables of counts: HOMM, marginals, averages, tables across parties."""
