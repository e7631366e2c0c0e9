"""A party is killed at random moments; its ledger must never know less than what left the party.

60 kills, more while none fell between charge and answer; 200 in `make fuzz`. This file is also what the killed
processes run: one light parent starts Python once and forks a party per kill.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

from syndic.kernel.memory import Memory, Stored
from syndic.privacy.event import ConcentratedEvent
from syndic.privacy.ledger import Ledger
from syndic.privacy.unit import Budget

MOST = 200
KILLS = MOST if "SYNDIC_FUZZ" in os.environ else 60
RHO = Fraction(1, 10**6)


def party(folder: Path, life: int, pipe: int) -> None:
    """Answer calls for ever: charge, draw, store reply, memory and commit together, and only then let the reply out."""
    with Ledger.open(folder / "ledger.db") as ledger:
        memory = Memory(ledger.database, "digest")

        def work(call: str) -> tuple[Stored, dict[str, bytes]]:
            ledger.reserve(
                dataset="visits",
                study="digest",
                call=call,
                door="release",
                events=[ConcentratedEvent(rho=RHO)],
                why="counts",
            )
            os.write(pipe, f"charged {call}\n".encode())
            reply = os.urandom(16)
            return Stored(asked=call, charged=True, reply=reply), {call: reply}

        for call in [*unanswered(ledger), *(f"{life}-{number}" for number in range(100_000))]:
            reply = memory.answer_once(
                call,
                call,
                lambda call=call: work(call),  # type: ignore[misc]
                lambda answer, call=call: ledger.commit("digest", call, digest_of(answer.reply)),  # type: ignore[misc]
            )
            os.write(pipe, f"committed {call} {digest_of(reply)}\n".encode())
            write_through(folder / "released", f"{call} {reply.hex()}\n")


def digest_of(reply: bytes) -> str:
    return hashlib.sha256(reply).hexdigest()


def unanswered(ledger: Ledger) -> list[str]:
    """The calls that a former life charged and did not commit; the coordinator asks them again."""
    entries = list(ledger.entries())
    answered = {entry.call for entry in entries if entry.kind == "commit"}
    return [entry.call for entry in entries if entry.kind == "reserve" and entry.call not in answered]


def write_through(path: Path, line: str) -> None:
    """Append the line and have it on disk."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.fsync(file)
    os.close(file)


def kill_again_and_again(folder: Path, seed: int) -> None:
    """Fork a party, kill it at a random moment, keep what it had told, look at the ledger."""
    chance = random.Random(seed)
    with (folder / "told").open("ab") as told:
        charged: list[bytes] = []
        for life in range(MOST):
            if life >= KILLS and len(charged) > len(set(charged)):
                break  # about a tenth of the kills makes a call be charged and asked again
            end, pipe = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(end)
                party(folder, life, pipe)
                os._exit(1)
            os.close(pipe)
            # a fifth is killed while opening or recovering the file, the others after the first charge
            heard = b"" if life % 5 == 0 else os.read(end, 4096)
            time.sleep(chance.uniform(0, 0.01))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            while more := os.read(end, 65536):
                heard += more
            os.close(end)
            told.write(heard)
            charged += [line for line in heard.splitlines() if line.startswith(b"charged ")]
            if life % 20 == 0:
                with Ledger.open(folder / "ledger.db") as ledger:
                    ledger.verify()


def lines(path: Path) -> list[list[str]]:
    # a line cut by the kill was not told and not released
    return [line.split() for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_no_kill_loses_a_charge_or_lets_a_reply_out_without_one(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.declare("visits", Budget(epsilon=Fraction(100), delta=Fraction(1, 10**6)))
    seed = random.SystemRandom().randrange(2**32)
    parent = subprocess.run(
        # from Python 3.12 on a fork beside numpy's threads is warned of; here the child is killed anyway
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", __file__, str(tmp_path), str(seed)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (parent.returncode, parent.stderr) == (0, ""), f"seed {seed}"

    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.verify()
        entries = list(ledger.entries())
        spent = ledger.spent("visits").cost
        left_open = unanswered(ledger)
        stored = dict(ledger.database.rows("SELECT call, reply FROM answers"))
        kept = dict(ledger.database.rows("SELECT name, value FROM kept"))
    charges = [entry.call for entry in entries if entry.kind == "reserve"]
    answers = {entry.call: entry.reply for entry in entries if entry.kind == "commit"}
    told = lines(tmp_path / "told")
    told_charged = {words[1] for words in told if words[0] == "charged"}
    told_committed = {words[1]: words[2] for words in told if words[0] == "committed"}

    assert len(charges) == len(set(charges))
    assert spent.rho == len(charges) * RHO * 10**12
    assert told_charged <= set(charges)
    assert told_committed.items() <= answers.items()
    for call, reply in lines(tmp_path / "released"):
        assert call in charges
        assert stored[call] == bytes.fromhex(reply)
    # all of an answer is there or nothing of it
    assert {call: digest_of(reply) for call, reply in stored.items()} == answers
    assert kept == stored
    # a life leaves at most one call open, and the next life finishes it without another charge
    assert len(left_open) <= 1
    again = [words[1] for words in told if words[0] == "charged"]
    assert len(again) > len(set(again)), "no kill fell between charge and answer"


if __name__ == "__main__":
    kill_again_and_again(Path(sys.argv[1]), int(sys.argv[2]))
