"""What objects with `fit` share: parameters as scikit-learn wants them, and the cap of a ledger over all fits."""

import inspect
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, Self

from syndic.errors import InputError, MissingExtraError
from syndic.privacy import Budget, Ledger

Number = float | str | Fraction


class Parametrised:
    """Parameters are stored as they are given and checked at `fit`: scikit-learn's clone compares them."""

    def _keep(self, parameters: Mapping[str, Any]) -> None:
        """Store the constructor's parameters as given."""
        for name in defaults_of(type(self)):
            setattr(self, name, parameters[name])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` changes nothing, as no parameter is an estimator."""
        del deep
        return {name: getattr(self, name) for name in defaults_of(type(self))}

    def set_params(self, **parameters: Any) -> Self:
        """Set some parameters; what was fitted stays until the next `fit`."""
        known = defaults_of(type(self))
        unknown = [name for name in parameters if name not in known]
        if unknown:
            raise InputError(f"unknown parameter '{unknown[0]}'; the parameters are {', '.join(known)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self


def defaults_of(kind: type) -> Mapping[str, Any]:
    """Return the constructor's parameters with their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}


def declare(ledger: Ledger, dataset: str, cap: Number | Budget | None, delta: Fraction) -> None:
    """Declare a new data set; the cap that a ledger has is not changed from here."""
    given = cap if isinstance(cap, Budget) or cap is None else Budget.of(cap, delta)
    known = dataset in ledger.datasets()
    if known and given not in (None, ledger.spent(dataset).cap):
        raise InputError(
            f"cap differs from the one that the ledger has for '{dataset}': leave cap out, or change the ledger's "
            "with syndic.Ledger.declare"
        )
    if not known and given is None:
        raise InputError(f"the ledger does not know '{dataset}' yet: give cap, the most that all fits may cost")
    if not known and given is not None:
        ledger.declare(dataset, given)


def validation() -> Any:
    """Return scikit-learn's checks of what is handed to `fit` and `predict`."""
    try:
        from sklearn.utils import validation as checks  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError("scikit-learn", "evaluate") from None
    return checks


def tags(kind: Literal["classifier", "regressor"], *, rows: bool = True) -> Any:
    """Return what scikit-learn wants to know of a model of rows, or of a published matrix of two classes at most."""
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
