"""The kernel turns a protocol into messages: steps, parties with three doors, sessions, answers, codec."""

from syndic.kernel.call import Call, Reply
from syndic.kernel.codec import Message, Nothing, decode, encode
from syndic.kernel.memory import Memory
from syndic.kernel.node import Node, answer
from syndic.kernel.party import Desk, Party
from syndic.kernel.protocol import Disclosure, Estimate, Protocol, Result, run
from syndic.kernel.session import Exchange, Progress, Session, silent_progress
from syndic.kernel.step import Reveals, Step, step, steps_of
from syndic.kernel.terms import Limits, Member, Terms, budget_of, member, people_of, schema_of
from syndic.kernel.transport import Delivery, Runtime

__all__ = [
    "Call",
    "Delivery",
    "Desk",
    "Disclosure",
    "Estimate",
    "Exchange",
    "Limits",
    "Member",
    "Memory",
    "Message",
    "Node",
    "Nothing",
    "Party",
    "Progress",
    "Protocol",
    "Reply",
    "Result",
    "Reveals",
    "Runtime",
    "Session",
    "Step",
    "Terms",
    "answer",
    "budget_of",
    "decode",
    "encode",
    "member",
    "people_of",
    "run",
    "schema_of",
    "silent_progress",
    "step",
    "steps_of",
]
