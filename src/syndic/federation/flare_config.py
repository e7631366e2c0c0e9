"""The files that a NVIDIA FLARE server or site starts from, with the policy that every one of ours has.

Policy at a site: no job is accepted, shipped code and every order of the engine are refused for every role, no
class may be built because a message names it, no log is sent, the workspace is inside the party's own folder, and
nothing listens that does not ask for a certificate.
"""

import json
from pathlib import Path
from typing import Any

from syndic.errors import IntegrityError
from syndic.federation.requests import SERVER_NAME, Approval, Federation

SITE_CLASS = "syndic.federation.site.PartySite"
RELAY_CLASS = "syndic.runtime.flare.server.Relay"
_ROLES = ("project_admin", "org_admin", "lead", "member")


def server_kit(workspace: Path, federation: Federation) -> dict[str, Any]:
    """Return the files of a server by their place in its workspace, except keys and certificates."""
    server = {
        "name": federation.name,
        "service": {"target": f"{federation.host}:{federation.port}", "scheme": "grpc"},
        "admin_server": federation.host,
        "admin_port": federation.port,
        "ssl_private_key": "server.key",
        "ssl_cert": "server.crt",
        "ssl_root_cert": "rootCA.pem",
        "connection_security": "mtls",
    }
    relay = {"socket_file": str(workspace / "relay.sock"), "list_file": str(workspace / "admitted.json")}
    resources = {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [RELAY_CLASS],
        "servers": [{"admin_storage": "transfer", "max_num_clients": 1000, "heart_beat_timeout": 60}],
        "snapshot_persistor": _storage(workspace),
        "components": [*_job_components(workspace), {"id": "syndic", "path": RELAY_CLASS, "args": relay}],
    }
    return {
        "startup/fed_server.json": {"format_version": 2, "servers": [server]},
        "local/resources.json": resources,
        **_policy(),
    }


def made_for(workspace: Path) -> bool:
    """Return whether a server's files were written for their present place: the engine needs absolute paths."""
    try:
        resources = json.loads((workspace / "local" / "resources.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        # damaged: it is rewritten
        return False
    return isinstance(resources, dict) and bool(resources.get("snapshot_persistor") == _storage(workspace))


def site_kit(approval: Approval) -> dict[str, Any]:
    """Return the files of a site by their place in its workspace, except keys and certificates."""
    server = {
        "name": approval.federation,
        "service": {"target": f"{approval.host}:{approval.port}", "scheme": "grpc"},
        "identity": SERVER_NAME,
    }
    client = {
        "ssl_private_key": "client.key",
        "ssl_cert": "client.crt",
        "ssl_root_cert": "rootCA.pem",
        "fqsn": approval.party,
        "is_leaf": True,
        "connection_security": "mtls",
        # nothing is sent to the server at registration
        "site_config": {},
    }
    resources = {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [SITE_CLASS],
        "allow_log_streaming": False,
        "client": {"retry_timeout": 30},
        # relative to the workspace, where the engine runs: the folder may be moved
        "components": [{"id": "syndic", "path": SITE_CLASS, "args": {"home": ".."}}],
    }
    return {
        "startup/fed_client.json": {"format_version": 2, "servers": [server], "client": client},
        "local/resources.json": resources,
        **_policy(),
    }


def write_files(workspace: Path, files: dict[str, Any]) -> None:
    """Write the files of a server or a site."""
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(content))


def check_files(workspace: Path, files: dict[str, Any]) -> None:
    """Raise `IntegrityError` unless the workspace has these files unchanged and no others that would be read."""
    for name, content in files.items():
        path = workspace / name
        if not path.is_file() or path.read_text() != _text(content):
            raise IntegrityError(f"{path}: is not as `syndic party accept` wrote it; accept the approval again")
    expected = {workspace / name for name in files}
    allowed = {".key", ".crt", ".pem"}
    for folder in ("startup", "local"):
        for path in (workspace / folder).iterdir():
            if path not in expected and path.suffix not in allowed:
                raise IntegrityError(f"{path}: this file is not ours and would be read at the start: remove it")


def _policy() -> dict[str, Any]:
    return {
        "local/authorization.json": {"format_version": "1.0", "permissions": dict.fromkeys(_ROLES, "none")},
        "local/comm_config.json": {
            "allow_adhoc_conns": False,
            "internal": {"scheme": "tcp", "resources": {"host": "localhost", "connection_security": "mtls"}},
        },
        "local/log_config.json": _logging(),
    }


def _storage(workspace: Path) -> dict[str, Any]:
    place = {"root_dir": str(workspace / "snapshots"), "uri_root": "/"}
    storage = {"path": "nvflare.app_common.storages.filesystem_storage.FilesystemStorage", "args": place}
    return {
        "path": "nvflare.app_common.state_persistors.storage_state_persistor.StorageStatePersistor",
        "args": {"uri_root": "/", "storage": storage},
    }


def _job_components(workspace: Path) -> list[dict[str, Any]]:
    """Return the components that the engine needs at its start; no job is ever submitted to it."""
    return [
        {"id": "job_scheduler", "path": "nvflare.app_common.job_schedulers.job_scheduler.DefaultJobScheduler"},
        {
            "id": "job_manager",
            "path": "nvflare.apis.impl.job_def_manager.SimpleJobDefManager",
            "args": {"uri_root": str(workspace / "jobs"), "job_store_id": "job_store"},
        },
        {"id": "job_store", "path": "nvflare.app_common.storages.filesystem_storage.FilesystemStorage"},
    ]


def _logging() -> dict[str, Any]:
    handler = {
        "class": "logging.handlers.RotatingFileHandler",
        "level": "INFO",
        "formatter": "plain",
        "filename": "engine.log",
        "mode": "a",
        "maxBytes": 20_000_000,
        "backupCount": 3,
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"file": handler},
        "loggers": {"root": {"level": "INFO", "handlers": ["file"]}},
    }


def _text(content: Any) -> str:
    return json.dumps(content, indent=2, sort_keys=True) + "\n"
