"""What a study costs a party: the one number that plan, agreement, console, ledger, statement and report show."""

from syndic.privacy import Price
from syndic.study.document import Study


def price_of(study: Study, party: str) -> Price:
    """Return the cost of all that the study charges at a party, at the study's delta, and what it discloses."""
    return Price.of(study.name, study.plan.events(party), study.delta, disclosures_of(study))


def disclosures_of(study: Study) -> tuple[str, ...]:
    """Return what the study shows exactly, outside any epsilon; most studies show nothing."""
    aligned = () if study.alignment is None else (_aligned(study.alignment),)
    return (*study.plan.disclosure.discloses, *aligned)


def _aligned(alignment: str) -> str:
    return (
        f"its people were aligned by study {alignment[:12]}: every party knows exactly which of its people are common "
        "to all parties"
    )
