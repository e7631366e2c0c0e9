"""Dishonest coordinators and parties against untouched nodes, for every method.

`targets` are the studies, each with two neighbouring tables. `world` runs nodes and notes what they hide, `prefix`
records honest runs in which lies begin. `coordinator` and `party` deviate at random; `strategies_*` are deviations with
a name. `checks` says what must hold, `attack` holds what the liar saw against the charge, and `weakenings` takes out
one check of the nodes at a time.

`python -m liars` (with `tests` on the path) lists the strategies, and `python -m liars run` counts random deviations.
"""
