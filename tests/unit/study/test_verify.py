"""A release is recomputed from signed replies; whatever was changed on the way to it is found."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from organisations import COORDINATOR, agreed_nodes, homes_for
from support import CASES, Case
from syndic.errors import InputError, IntegrityError
from syndic.kernel import Call, Reply, decode, encode
from syndic.runtime import Local
from syndic.study.identity import Identity
from syndic.study.release import Release
from syndic.study.run import run_study
from syndic.study.verify import Carried, _read, differences

NAMES = ("marginals gaussian", "gram of rows", "learn mpc_grad", "learn local_grad", "estimate masked", "homm laplace")


def case_of(name: str) -> Case:
    found: Case = next(case for case in CASES if case.name == name)
    return found


def released(name: str, folder: Path) -> Release:
    """Run a case between organisations, and write the replies."""
    study, homes = homes_for(case_of(name).study, case_of(name).sources, folder)
    local = Local(agreed_nodes(study, homes))
    try:
        return run_study(study, local, identity=COORDINATOR, replies=folder / "replies", folder=folder / "own")
    finally:
        local.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_release_follows_from_the_replies(name: str, tmp_path: Path) -> None:
    release = released(name, tmp_path)
    # homm draws rows from the noisy counts
    assert set(differences(release, tmp_path / "replies")) <= (
        {"synthetic.parquet"} if name == "homm laplace" else set()
    )


def test_a_continued_run_writes_the_same_replies(tmp_path: Path) -> None:
    release = released("marginals gaussian", tmp_path)
    before = (tmp_path / "replies").read_bytes()
    run_study(release.study, Local({}), identity=COORDINATOR, replies=tmp_path / "replies", folder=tmp_path / "own")
    assert (tmp_path / "replies").read_bytes() == before


def test_another_result_than_the_sum_of_the_replies_is_found(tmp_path: Path) -> None:
    release, other = (released("marginals gaussian", tmp_path / name) for name in ("one", "other"))
    shown = Release(
        study=release.study, result=other.result, statement=release.statement, transcript=release.transcript
    )
    assert "marginals.parquet" in differences(shown, tmp_path / "one" / "replies")


def _body(carried: Carried) -> Carried:
    reply = decode(carried.replies["north"], Reply)
    body = reply.body[:-1] + bytes([reply.body[-1] ^ 1])
    return replace(carried, replies={**carried.replies, "north": encode(replace(reply, body=body, check=None))})


def _unsigned_call(carried: Carried) -> Carried:
    call = replace(decode(carried.calls["north"], Call), signature=bytes(64))
    return replace(carried, calls={**carried.calls, "north": encode(call)})


def _other_call(carried: Carried) -> Carried:
    call = replace(decode(carried.calls["north"], Call), call="f" * 32, check=None)
    signed = replace(call, signature=COORDINATOR.sign(call.signed_text()))
    return replace(carried, calls={**carried.calls, "north": encode(signed)})


def _signed_by_another(carried: Carried) -> Carried:
    reply = decode(carried.replies["north"], Reply)
    thief = Identity(signing=bytes(range(32)), sealing=bytes(range(32)))
    return replace(
        carried,
        replies={**carried.replies, "north": encode(replace(reply, signature=thief.sign(reply.signed_text())))},
    )


@pytest.mark.parametrize("change", [_body, _unsigned_call, _other_call, _signed_by_another])
def test_changed_calls_and_replies_are_found(change: Callable[[Carried], Carried], tmp_path: Path) -> None:
    release, path = released("marginals gaussian", tmp_path), tmp_path / "replies"
    with path.open("rb") as file:
        carried = list(_read(file, "replies"))
    for place in range(len(carried)):
        frames = [encode(change(one) if each == place else one) for each, one in enumerate(carried)]
        path.write_bytes(b"".join(len(one).to_bytes(8, "little") + one for one in frames))
        with pytest.raises(IntegrityError, match=r"signature|does not ask"):
            differences(release, path)


def test_a_file_that_is_cut_short_is_found(tmp_path: Path) -> None:
    release, path = released("marginals gaussian", tmp_path), tmp_path / "replies"
    whole = path.read_bytes()
    for length in (0, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(IntegrityError, match=r"missing|cut short"):
            differences(release, path)


@pytest.mark.parametrize("name", ["average", "marginals across"])
def test_methods_with_sealed_messages_write_no_replies(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sealed messages"):
        run_study(case_of(name).study, Local({}), replies=tmp_path / "replies")
    assert not (tmp_path / "replies").exists()
