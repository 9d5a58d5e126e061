"""What clients may ask for beside their statement."""

from __future__ import annotations

import math

import msgspec
import pytest

from skerry.config import FaultPolicy
from skerry.member.clientoptions import Options, read_options
from skerry.member.cursors import Lease
from skerry.member.requests import PageSize
from skerry.member.runs import page_bounds
from skerry.model.errors import UserError
from skerry.model.limits import Limits
from skerry.plan.rules import NAMES, Rules

LIMITS = Limits(cursor_lease_s=300.0, query_timeout_s=3600.0)


@pytest.mark.parametrize(
    ("given", "meaning"),
    [
        ({}, Options()),
        ({"fault_policy": "fail"}, Options(FaultPolicy.FAIL)),
        ({"resume_s": "30"}, Options(lease=Lease(30.0))),
        ({"resume_s": "0"}, Options()),
        ({"detach": "1"}, Options(lease=Lease(300.0, is_detached=True))),
        ({"detach": "1", "lease_s": "1.5"}, Options(lease=Lease(1.5, is_detached=True))),
        ({"detach": "0", "resume_s": "2"}, Options(lease=Lease(2.0))),
        ({"rules": "all"}, Options()),
        ({"rules": "none", "strategy": "bottom-up"}, Options(rules=Rules(frozenset(), "bottom-up"))),
        ({"rules": "-semijoin, -blocks"}, Options(rules=Rules(frozenset(NAMES) - {"semijoin", "blocks"}))),
        ({"rules": "filters"}, Options(rules=Rules(frozenset({"filters"})))),
        ({"root": "initiator", "baseline": "tables"}, Options(rules=Rules(root="initiator", baseline="tables"))),
    ],
)
def test_options(given: dict[str, str], meaning: Options) -> None:
    assert msgspec.structs.replace(read_options(given, LIMITS), timeout_s=0.0) == meaning


@pytest.mark.parametrize(
    ("asked_s", "given_s"), [(0.0, 3600.0), (2.5, 2.5), (3600.5, 3600.0), (1e300, 3600.0), (math.inf, 3600.0)]
)
def test_a_client_may_only_shorten_a_querys_time(asked_s: float, given_s: float) -> None:
    assert read_options({}, LIMITS, asked_s).timeout_s == given_s


@pytest.mark.parametrize("asked_s", [math.nan, -1.0, -math.inf])
def test_no_time_at_all(asked_s: float) -> None:
    with pytest.raises(UserError, match="timeout_s is a number of seconds"):
        read_options({}, LIMITS, asked_s)


@pytest.mark.parametrize(
    ("size", "rows_and_bytes"),
    [
        (PageSize(), (LIMITS.page_rows, LIMITS.page_bytes)),
        (PageSize(-1, -1), (LIMITS.page_rows, LIMITS.page_bytes)),
        (PageSize(5, -1), (5, LIMITS.page_bytes)),
        (PageSize(-5, 100), (0, 100)),
        (PageSize(2**63 - 1, 2**63 - 1), (2**63 - 1, LIMITS.frame_bytes // 4)),
    ],
)
def test_pages_fit_a_frame_whatever_is_asked_for(size: PageSize, rows_and_bytes: tuple[int, int]) -> None:
    assert page_bounds(size, LIMITS) == rows_and_bytes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"resume": "30"}, "no option 'resume': there are fault_policy, resume_s, again, detach, lease_s"),
        ({"fault_policy": "hope"}, "no fault policy 'hope'"),
        *(({"resume_s": text}, "resume_s is a number of seconds from 0 to 3600") for text in ("-1", "nan", "", "4e3")),
        ({"detach": "1", "lease_s": "soon"}, "lease_s is a number of seconds"),
        ({"rules": "magic"}, "no rule 'magic': there are filters, "),
        ({"rules": "filters,-blocks"}, "not both"),
        ({"strategy": "luck"}, "strategy is one of cost, bottom-up, not 'luck'"),
        ({"root": "moon"}, "root is one of anywhere, initiator, not 'moon'"),
        ({"baseline": "copy"}, "baseline is one of scans, tables, not 'copy'"),
    ],
)
def test_wrong_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_options(given, LIMITS)
