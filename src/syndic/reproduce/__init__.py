"""Every table and figure of the published methods, run again: published numbers beside ours, with a verdict."""

from syndic.reproduce.catalogue import CATALOGUE, PAPERS, chosen
from syndic.reproduce.item import Claim, Found, Item, Paper, Rule, Verdict
from syndic.reproduce.run import Done, reproduce

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
