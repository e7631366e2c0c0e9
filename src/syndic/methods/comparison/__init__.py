"""Methods for comparison: VertiGAN, DPLT, DistDiffGen, glued."""

DEALT = (
    "semi-honest: every role follows the protocol, and the coordinator, who deals the triples, colludes with no party; "
    "unless the study lists identities, the coordinator must not forge keys"
)
"""Whom to trust where the coordinator deals the triples and no rows are proven."""
