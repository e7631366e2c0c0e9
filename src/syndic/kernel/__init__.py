"""The kernel turns a protocol into messages: steps, parties with three doors, sessions, answers, codec."""

from syndic.kernel.agreement import Agreement, Agreements, Ready, check_agreement, check_all, read_agreement
from syndic.kernel.call import Call, Reply
from syndic.kernel.codec import Message, Nothing, decode, encode
from syndic.kernel.identity import PublicIdentity
from syndic.kernel.journal import Journal
from syndic.kernel.memory import Memory
from syndic.kernel.method import Disclosure, Estimate, Method, Result, run, steps_asked
from syndic.kernel.node import Node, answer
from syndic.kernel.party import Party, PartyState, no_bond
from syndic.kernel.session import Exchange, Progress, Session, silent_progress
from syndic.kernel.step import Reveals, Step, step, steps_of
from syndic.kernel.terms import Limits, Member, Terms, budget_of, identified, member, people_of, schema_of
from syndic.kernel.transport import Delivery, Runtime

__all__ = [
    "Agreement",
    "Agreements",
    "Call",
    "Delivery",
    "Disclosure",
    "Estimate",
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
    "Progress",
    "PublicIdentity",
    "Ready",
    "Reply",
    "Result",
    "Reveals",
    "Runtime",
    "Session",
    "Step",
    "Terms",
    "answer",
    "budget_of",
    "check_agreement",
    "check_all",
    "decode",
    "encode",
    "identified",
    "member",
    "no_bond",
    "people_of",
    "read_agreement",
    "run",
    "schema_of",
    "silent_progress",
    "step",
    "steps_asked",
    "steps_of",
]
