"""How long queries wait for a peer, by their fault policy."""

from __future__ import annotations

import pytest

from skerry.config import FaultPolicy, parse
from skerry.member.faults import OPTION, Patience, Watch, policy_of
from skerry.model.errors import ConfigError, UserError
from skerry.model.limits import Limits
from skerry.wire.session import LinkState

LIMITS = Limits(wait_s=30.0)
TIMEOUT_S = 3600.0


def watch(policy: FaultPolicy) -> Watch:
    return Watch(Patience.of(policy, LIMITS, TIMEOUT_S))


def linked(links: int, since: float = 0.0) -> LinkState:
    return LinkState(True, links, since)


def away(links: int, since: float) -> LinkState:
    return LinkState(False, links, since)


@pytest.mark.parametrize(
    ("policy", "lost_after_s"), [(FaultPolicy.FAIL, 0.0), (FaultPolicy.WAIT, 30.0), (FaultPolicy.BUFFER, TIMEOUT_S)]
)
def test_a_lost_connection_is_waited_for(policy: FaultPolicy, lost_after_s: float) -> None:
    look = watch(policy).look
    assert look("bergen", linked(1), 0.0) == ""
    assert (look("bergen", away(1, 10.0), 10.0) == "") == (lost_after_s > 0)
    if lost_after_s:
        assert look("bergen", away(1, 10.0), 9.9 + lost_after_s) == ""
        # It came back: the next loss is waited for afresh.
        assert look("bergen", linked(2, 20.0), 20.0) == ""
        assert look("bergen", away(2, 40.0), 39.9 + lost_after_s) == ""
        assert look("bergen", away(2, 40.0), 40.0 + lost_after_s) == f"no connection for {lost_after_s:g} s"


def test_with_fail_another_connection_does_not_help() -> None:
    look = watch(FaultPolicy.FAIL).look
    assert look("bergen", linked(4), 0.0) == ""
    assert look("bergen", linked(4), 9.0) == ""
    assert look("bergen", linked(5), 10.0) != ""
    assert look("tromso", linked(5), 10.0) == ""


@pytest.mark.parametrize("policy", list(FaultPolicy))
def test_the_first_connection_is_waited_for(policy: FaultPolicy) -> None:
    look = watch(policy).look
    assert look("bergen", None, 1e9) == ""
    assert look("bergen", away(0, 0.0), 29.9) == ""
    assert look("bergen", away(0, 0.0), 30.0) == "no connection for 30 s"


def test_names() -> None:
    assert FaultPolicy.named("buffer") is FaultPolicy.BUFFER
    with pytest.raises(UserError, match="no fault policy 'patient': there are fail, wait, buffer"):
        FaultPolicy.named("patient")
    assert policy_of({OPTION: "fail"}) is FaultPolicy.FAIL
    assert policy_of({OPTION: "of a newer release"}) is policy_of({}) is FaultPolicy.WAIT


def test_the_configuration_has_a_default() -> None:
    text = "cluster: c\nmembers: {oslo: {address: 'h:1'}}\n"
    assert parse(text).fault_policy is FaultPolicy.WAIT
    assert parse(text + "fault_policy: buffer").fault_policy is FaultPolicy.BUFFER
    with pytest.raises(ConfigError, match="fault_policy: no fault policy 'never'"):
        parse(text + "fault_policy: never")
