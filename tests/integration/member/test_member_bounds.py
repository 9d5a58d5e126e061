"""Bounds of one query, over real members."""

from __future__ import annotations

import pytest

import skerry
from skerry.model.errors import Overloaded
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW

pytestmark = pytest.mark.sail


def test_a_result_has_so_many_rows(start_sail: StartCluster) -> None:
    cluster = start_sail(limits={"result_rows": FEW})
    with cluster.connect("oslo") as connection:
        assert len(connection.cursor().execute("SELECT * FROM oslo.few").fetchall()) == FEW
        with pytest.raises(skerry.OperationalError, match=rf"more than {FEW} rows \(limits.result_rows\)") as many:
            connection.cursor().execute("SELECT * FROM few").fetchall()
        assert many.value.code == Overloaded.code
        assert connection.cursor().execute("SELECT count(*) FROM few").fetchall() == [(3 * FEW,)]
