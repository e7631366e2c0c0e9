"""The envelope of every question and every answer."""

from syndic.kernel.codec import Message


class Call(Message):
    """A question to one party. No parameter of the study travels: the party computes from its own copy."""

    study: str
    party: str
    step: str
    call: str
    body: bytes


class Reply(Message):
    """An answer: `code` is "ok" with a body, or an error's code with a text that holds nothing private."""

    code: str
    body: bytes = b""
    text: str = ""
