"""Publish something together from tables that may not be pooled.

`import syndic as sy` has the names below. `syndic.sklearn` has the estimators and synthesizers in the manner of
scikit-learn; everything else is imported from its own package.
"""

from importlib import import_module
from typing import Any

# names by module, each loaded when it is first used: a party's process needs no advice, no evaluation and no plots;
# `__init__.pyi` says the same to type checkers
_NAMES = {
    "syndic.study": "Study plan simulate Release",
    "syndic.study.draft": "draft",
    "syndic.federation.run": "run",
    "syndic.advice": "advise",
    "syndic.evaluation": "evaluate",
    "syndic.privacy": "Ledger Budget Unit",
    "syndic.kernel": "Member Limits",
    "syndic.data": "Schema Boolean Categorical Date Integer Ordinal Real",
    "syndic.methods": "Align Average Describe Distdiffgen Dplt Estimate Glued Gram Homm Learn Marginals Mixing "
    "Survival Synthesis Vertigan Vertimrf",
    "syndic.version": "__version__",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'syndic' has no attribute {name!r}"
        raise AttributeError(message)
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
