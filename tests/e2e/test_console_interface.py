"""The interface for programs under made-up requests (schemathesis): it answers as described, and never fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from consoles import Running, agree_all, run_between, study_between

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "ignored_auth",
)


def test_made_up_requests_get_described_answers(tmp_path: Path) -> None:
    pytest.importorskip("schemathesis", reason="pip install 'syndic[dev]' brings schemathesis")
    study, homes = study_between(tmp_path / "homes")
    agree_all(study, homes)
    run_between(study, homes).write(homes["north"].folder / "releases" / "first")
    settings = tmp_path / "schemathesis.toml"
    # some requests are about what is there, so that they come further than the look-up
    settings.write_text(f'[parameters]\n"path.run" = "{study.digest}"\n"path.name" = "first"\n')
    running = Running(homes["north"].folder)
    try:
        command = [str(Path(sys.executable).with_name("st")), f"--config-file={settings}", "run"]
        command += [f"{running.place}/api/v1/openapi.json", f"--header=Authorization: Bearer {running.secret}"]
        command += [f"--checks={','.join(CHECKS)}", "--phases=coverage,fuzzing", "--max-examples=2", "--seed=1"]
        # both take seconds for each answer; archives are bytes that it cannot make up
        command += ["--exclude-path-regex=(advice|report)$", "--exclude-operation-id=add_release"]
        command += ["--request-timeout=60", "--no-color", "--warnings=off"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    finally:
        running.close()
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "Tested: 24" in done.stdout
