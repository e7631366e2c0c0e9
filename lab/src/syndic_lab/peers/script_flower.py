"""Federated logistic regression by Flower. Runs as a script in an interpreter that has flwr; imports nothing of Syndic.

Flower's own parts: FedAvg, `DifferentialPrivacyClientSideFixedClipping` with its clipping at the clients, SecAgg+, and
the simulation engine. Ours: a client's training, which is full gradient steps on its rows.
"""

# mypy: disable-error-code="import-not-found, misc"

# the engine sends a client's code to its workers without the names in annotations
from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

# by which the engine's processes are found: they inherit it
MARK = f"SYNDIC_PEER_{os.getpid()}"


def main(folder: Path) -> dict[str, Any]:
    """Read `rows.npz` and `settings.json`; return the weights, CPU seconds of all processes, and bytes of messages."""
    # before the engine is imported; nothing is sent home
    os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", MARK: "1"}
    from flwr.client import ClientApp  # noqa: PLC0415
    from flwr.client.mod import fixedclipping_mod, secaggplus_mod  # noqa: PLC0415
    from flwr.server import ServerApp  # noqa: PLC0415
    from flwr.simulation import run_simulation  # noqa: PLC0415

    settings = json.loads((folder / "settings.json").read_text())
    with np.load(folder / "rows.npz") as rows:
        for name in ("features", "labels"):
            for party, part in enumerate(np.array_split(rows[name], settings["parties"])):
                np.save(folder / f"{name}-{party}.npy", part)
        settings["dimension"] = rows["features"].shape[1]
    np.random.seed(settings["seed"])  # noqa: NPY002 - what Flower draws its noise from
    found: dict[str, Any] = {}
    server = ServerApp()
    server.main()(lambda grid, context: found.update(_serve(grid, context, settings)))
    client = ClientApp(
        client_fn=lambda context: _client(folder, int(context.node_config["partition-id"]), settings),
        mods=[secaggplus_mod, fixedclipping_mod],
    )
    run_simulation(
        server, client, num_supernodes=settings["parties"], backend_config={"client_resources": {"num_cpus": 1}}
    )
    return found


def _client(folder: Path, party: int, settings: Any) -> Any:
    from flwr.client import NumPyClient  # noqa: PLC0415

    class Party(NumPyClient):
        """Steps downhill on its own rows."""

        def fit(self, parameters: Any, config: Any) -> Any:  # noqa: ARG002 - Flower's signature
            features, labels = (np.load(folder / f"{name}-{party}.npy") for name in ("features", "labels"))
            weights = parameters[0]
            for _ in range(settings["steps"]):
                slopes = -labels / (1 + np.exp(labels * (features @ weights)))
                gradient = slopes @ features / len(labels) + settings["penalty"] * weights
                weights = weights - settings["rate"] * gradient
            return [weights], len(labels), {}

    return Party().to_client()


def _serve(grid: Any, context: Any, settings: Any) -> dict[str, Any]:
    from flwr.common import ndarrays_to_parameters  # noqa: PLC0415
    from flwr.common.serde import message_to_proto  # noqa: PLC0415
    from flwr.server import LegacyContext, ServerConfig  # noqa: PLC0415
    from flwr.server.strategy import (  # noqa: PLC0415
        DifferentialPrivacyClientSideFixedClipping,
        FedAvg,
    )
    from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow  # noqa: PLC0415

    found: dict[str, Any] = {"bytes": 0, "rounds": 0, "weights": [0.0] * settings["dimension"]}
    carry = grid.send_and_receive

    def counted(messages: Any, *, timeout: Any = None) -> Any:
        messages = list(messages)
        replies = list(carry(messages, timeout=timeout))
        found["bytes"] += sum(message_to_proto(message).ByteSize() for message in (*messages, *replies))
        return replies

    def noted(number: int, weights: Any, config: Any) -> None:  # noqa: ARG001 - Flower's signature
        # a round that failed leaves them as they are
        moved = found["weights"] != weights[0].tolist()
        found.update(weights=weights[0].tolist(), rounds=found["rounds"] + moved)

    grid.send_and_receive = counted
    parties = settings["parties"]
    average = FedAvg(
        fraction_evaluate=0.0,
        min_fit_clients=parties,
        min_available_clients=parties,
        initial_parameters=ndarrays_to_parameters([np.zeros(settings["dimension"])]),
        evaluate_fn=noted,
    )
    private = DifferentialPrivacyClientSideFixedClipping(average, settings["multiplier"], settings["clip"], parties)
    masked = SecAggPlusWorkflow(
        num_shares=parties,
        reconstruction_threshold=parties - 1,
        max_weight=settings["people"],
        clipping_range=settings["range"],
        quantization_range=settings["grid"],
    )
    before = _busy()
    config = ServerConfig(num_rounds=settings["rounds"])
    DefaultWorkflow(fit_workflow=masked)(grid, LegacyContext(context, config, private))
    found |= {"before": before, "seconds": _busy() - before}
    return found


def _busy() -> float:
    """Return the CPU seconds of this process and of all that it or its engine started and that still run."""
    total, ticks = time.process_time(), os.sysconf("SC_CLK_TCK")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (process / "environ").read_bytes():
                fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                total += (int(fields[11]) + int(fields[12])) / ticks
        except OSError:
            continue
    return total


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(Path(sys.argv[1]))) + "\n")
