"""Share what objects with `fit` have in common: parameters as scikit-learn expects them, and a ledger's cap."""

import inspect
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from syndic.data import Schema
from syndic.errors import InputError, MissingExtraError
from syndic.privacy import Budget, Ledger

Number = float | str | Fraction


class Parametrised:
    """Store parameters as given and check them at `fit`, as scikit-learn's `clone` requires."""

    _set_by_fit: ClassVar[str] = "statement_"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` has no effect, because no parameter is an estimator."""
        del deep
        return {name: getattr(self, name) for name in defaults_of(type(self))}

    def set_params(self, **parameters: Any) -> Self:
        """Set some parameters; fitted attributes stay until the next `fit`."""
        known = defaults_of(type(self))
        unknown = [name for name in parameters if name not in known]
        if unknown:
            raise InputError(f"unknown parameter '{unknown[0]}'; the parameters are {', '.join(known)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults, words = defaults_of(type(self)), []
        for name, value in self.get_params().items():
            text = f"<{', '.join(value.names)}>" if isinstance(value, Schema) else repr(value)
            # compared as text: a parameter may be an array
            if text != repr(defaults[name]):
                words.append(f"{name}={text}")
        return f"{type(self).__name__}({', '.join(words)})"

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` was called."""
        return hasattr(self, self._set_by_fit)


def defaults_of(kind: type) -> Mapping[str, Any]:
    """Return the constructor's parameters with their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}


def declare(ledger: Ledger, dataset: str, cap: Number | Budget | None, delta: Fraction) -> None:
    """Declare a new data set; the cap of a known data set is never changed here."""
    given = cap if isinstance(cap, Budget) or cap is None else Budget.of(cap, delta)
    known = dataset in ledger.datasets()
    if known and given not in (None, ledger.spent(dataset).cap):
        raise InputError(
            f"cap differs from the cap of '{dataset}' in the ledger: leave cap out, or change the ledger's cap "
            "with syndic.Ledger.declare"
        )
    if not known and given is None:
        raise InputError(f"'{dataset}' is not in the ledger yet: give cap, the most that all fits together may cost")
    if not known and given is not None:
        ledger.declare(dataset, given)


def refuse_seeded_charge(seed: int | None, ledger: object) -> None:
    """Refuse to charge a seeded fit to a ledger."""
    if seed is not None and ledger is not None:
        raise InputError("a seeded fit is not private, so it cannot be charged to a ledger: leave out seed or ledger")


def accuracy(model: Any, rows: Any, classes: Any) -> float:
    """Return the share of rows whose class a model predicts."""
    return float(np.mean(np.asarray(model.predict(rows)) == np.asarray(classes)))


def r_squared(model: Any, rows: Any, numbers: Any) -> float:
    """Return the share of the variance of numbers that a model explains."""
    truth = np.asarray(numbers, dtype=np.float64)
    return 1.0 - float(((truth - model.predict(rows)) ** 2).sum()) / float(((truth - truth.mean()) ** 2).sum())


def validation() -> Any:
    """Return scikit-learn's checks of the arguments of `fit` and `predict`."""
    try:
        from sklearn.utils import validation as checks  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError("scikit-learn", "evaluate") from None
    return checks


def tags(kind: Literal["classifier", "regressor"], *, rows: bool = True) -> Any:
    """Return scikit-learn's tags of a model of rows, or of a published matrix with at most two classes."""
    validation()
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags  # noqa: PLC0415 (an extra)

    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=rows),
        # missing values are allowed, a fit without seed is never repeated
        input_tags=InputTags(allow_nan=rows),
        regressor_tags=RegressorTags() if kind == "regressor" else None,
        classifier_tags=ClassifierTags(multi_class=rows) if kind == "classifier" else None,
    )
