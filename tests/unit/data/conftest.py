"""Engines that the tests of sources share, each started once."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syndic_lab.bench.postgres_server import PostgresServer, is_installed, postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    if not is_installed():
        pytest.skip("PostgreSQL is not installed: apt install postgresql")
    with postgres_server() as running:
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session on this machine, as small as it can be."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: apt install default-jre-headless")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'syndic[spark]'")
    folder: Path = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
    }
    builder = sql.SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = builder.getOrCreate()
        yield session
        session.stop()
