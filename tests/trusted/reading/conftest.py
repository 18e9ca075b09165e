"""A PostgreSQL server and a local Spark session with the rows of `engine_rows`."""

import sys

import pytest

from leastnoise import DatabaseTable
from trusted.reading.engine_rows import ARROW, COLUMNS, ROWS, literal
from trusted.reading.postgres import fill, server, table


@pytest.fixture(scope="session")
def url():
    """Yield the address of a PostgreSQL server with the tables of the tests."""
    with server() as server_url:
        kinds = (
            "bigint, double precision, text, boolean, bigint, varchar(20), text, numeric, "
            "integer, date, timestamp, timestamptz"
        )
        types = dict(zip("nxtbuwoeidsz", kinds.split(", "), strict=True))
        table(
            server_url,
            "visits",
            types,
            (
                [literal(COLUMNS[name][row], kind) for name, kind in types.items()]
                for row in range(ROWS)
            ),
        )
        fill(server_url, ["ALTER ROLE tester SET timezone = 'Asia/Tokyo'"])
        yield server_url


@pytest.fixture
def postgres(url, monkeypatch):
    monkeypatch.setenv("VISITS_URL", url)
    return DatabaseTable("public.visits", "env:VISITS_URL")


@pytest.fixture(scope="session")
def spark_session():
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    # Each query has one plan, and no other plan after a stage.
    settings |= {"spark.sql.adaptive.enabled": "false"}
    # Queries have hundreds of cases on few rows, and compiling them takes minutes.
    settings |= {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    # The address is only reachable from this machine, and the heap leaves memory for other tests.
    settings |= {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
    }
    settings |= {"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}
    # Few functions run often enough for the second compiler, one thread is enough for garbage
    # collection, and the classes of Spark need no verification.
    unverified = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    settings["spark.driver.extraJavaOptions"] = (
        f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {unverified}"
    )
    builder = SparkSession.builder.master("local[1]").appName("leastnoise")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise executors take the first python3 of the path, which may have no PyArrow.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="session")
def spark(spark_session):
    """Return the rows of the tests as a frame of Spark."""
    # Otherwise times without a zone get the zone of the session.
    spark_session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        return spark_session.createDataFrame(ARROW).repartition(3)
    finally:
        spark_session.conf.unset("spark.sql.timestampType")


@pytest.fixture(params=["postgres", "spark"])
def engine(request):
    return request.getfixturevalue(request.param)
