"""From the owners' consoles to a release, through the engine: agreed, run and read without a terminal."""

from consoles import Visitor, study_file
from federation import PARTIES, Federation, alike, horizontal, wait_until
from syndic.privacy import Ledger


def test_owners_agree_and_the_coordinator_runs_by_console(federation: Federation) -> None:
    federation.put(alike())
    study = federation.identified(horizontal('method = "homm"', name="by console"))
    coordinator = Visitor(federation.coordinator.folder)
    assert {(one["party"], one["connected"]) for one in coordinator.ask("GET", "/parties")} >= {
        (name, True) for name in PARTIES
    }
    place = coordinator.post("/studies", action="receive", text=study_file(study))

    # nobody agreed: the run fails, and says whose agreement is missing; nothing is charged
    coordinator.post(place, action="run")
    assert "has not agreed" in told(coordinator, study.digest, "failed")
    owners = {name: Visitor(federation.home(name)) for name in PARTIES}
    for owner in owners.values():
        assert owner.post("/studies", action="receive", text=study_file(study)) == place
        owner.post(place, action="agree", typed=study.digest[:8], days="1", read="yes")
    assert all(federation.charges(study, None, name) == [] for name in PARTIES)

    coordinator.post(place, action="run")
    assert "finished" in told(coordinator, study.digest, "finished")
    wait_until(lambda: coordinator.ask("GET", "/releases") != [])
    steps = coordinator.ask("GET", f"/studies/{study.digest}/progress")["steps"]
    assert [(one["step"], one["answered"] > 0, one["refused"]) for one in steps] == [
        ("ready", True, 0),
        ("meet", True, 0),
        ("sanitise", True, 0),
    ]
    content = coordinator.ask("GET", f"/releases/{study.digest[:16]}/archive")
    for name, owner in owners.items():
        line = owner.ask("POST", "/releases", 201, body=content)
        assert (line["digest"], line["agreed"], line["protects"]) == (study.digest, True, True)
        assert owner.ask("GET", f"/studies/{study.digest}/progress")["state"] == "finished"
        assert owner.ask("POST", "/ledger/verification", body={})["whole"] is True
        with Ledger.open(federation.home(name) / "ledger.sqlite") as ledger:
            assert len(ledger.charged(study.digest)) == len(study.plan.events(name))


def told(coordinator: Visitor, run: str, state: str) -> str:
    """Wait until the run is in this state; return what is said about it."""
    wait_until(lambda: coordinator.ask("GET", f"/studies/{run}/progress")["state"] == state)
    return str(coordinator.ask("GET", f"/studies/{run}/progress")["words"])
