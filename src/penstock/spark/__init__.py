"""Spark: the data source `penstock`, the session settings, and the pipelines. The only room that imports pyspark."""

from importlib.util import find_spec

from penstock.errors import MissingExtraError

if find_spec("pyspark") is None:
    raise MissingExtraError.of("spark", "reading changes with Spark")
