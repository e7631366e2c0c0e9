"""The kernel turns a protocol into messages: steps, parties with three doors, sessions, answers, codec."""

from syndic.kernel.agreement import Agreement, Agreements, Ready, check_agreement, check_all, read_agreement
from syndic.kernel.call import Call, Reply
from syndic.kernel.codec import Message, Nothing, decode, encode
from syndic.kernel.disclosure import ALIGNED, GROUPS, MADE_UP, Disclosure, beyond_unit, change_of, everybody
from syndic.kernel.identity import PublicIdentity
from syndic.kernel.in_memory import in_memory_node
from syndic.kernel.journal import Journal
from syndic.kernel.memory import Memory
from syndic.kernel.method import Method, make_plan, run
from syndic.kernel.node import Node, answer
from syndic.kernel.party import Party, PartyState, no_bond
from syndic.kernel.plan import Plan, Planned, Resources, SubProtocol, steps_of_run
from syndic.kernel.requires import Requires
from syndic.kernel.result import Result, read_table
from syndic.kernel.session import Exchange, Progress, Session, silent_progress
from syndic.kernel.step import Reveals, Step, step, steps_of
from syndic.kernel.terms import (
    Limits,
    Member,
    Terms,
    budget_of,
    budgets_of,
    identified,
    member,
    most_rows,
    people_of,
    schema_of,
)
from syndic.kernel.transport import Delivery, Runtime

__all__ = [
    "ALIGNED",
    "GROUPS",
    "MADE_UP",
    "Agreement",
    "Agreements",
    "Call",
    "Delivery",
    "Disclosure",
    "Exchange",
    "Journal",
    "Limits",
    "Member",
    "Memory",
    "Message",
    "Method",
    "Node",
    "Nothing",
    "Party",
    "PartyState",
    "Plan",
    "Planned",
    "Progress",
    "PublicIdentity",
    "Ready",
    "Reply",
    "Requires",
    "Resources",
    "Result",
    "Reveals",
    "Runtime",
    "Session",
    "Step",
    "SubProtocol",
    "Terms",
    "answer",
    "beyond_unit",
    "budget_of",
    "budgets_of",
    "change_of",
    "check_agreement",
    "check_all",
    "decode",
    "encode",
    "everybody",
    "identified",
    "in_memory_node",
    "make_plan",
    "member",
    "most_rows",
    "no_bond",
    "people_of",
    "read_agreement",
    "read_table",
    "run",
    "schema_of",
    "silent_progress",
    "step",
    "steps_of",
    "steps_of_run",
]
