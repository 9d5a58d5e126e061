"""How the member's own client reaches Sail."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="Spark Connect's client is not installed")
def test_the_client_takes_nothing_packed() -> None:
    """Sail would pack every result with gzip: four fifths of the processor time of sorted rows."""
    from skerry.spark.sail import _SocketFile

    assert ("grpc.compression_enabled_algorithms_bitset", 1) in _SocketFile("unix:/nowhere")._channel_options
