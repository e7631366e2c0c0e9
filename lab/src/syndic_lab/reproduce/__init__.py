"""Every table and figure of the published methods, run again: published numbers beside ours, with a verdict."""

from syndic_lab.reproduce.catalogue import CATALOGUE, PAPERS, chosen
from syndic_lab.reproduce.item import Claim, Found, Item, Paper, Rule, Verdict
from syndic_lab.reproduce.run import Done, reproduce

__all__ = [
    "CATALOGUE",
    "PAPERS",
    "Claim",
    "Done",
    "Found",
    "Item",
    "Paper",
    "Rule",
    "Verdict",
    "chosen",
    "reproduce",
]
