"""Tables of counts and averages: HOMM, marginals, two-way tables across parties, averages."""
