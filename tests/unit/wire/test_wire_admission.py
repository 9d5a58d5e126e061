"""Places at a listener: who goes when they are taken, and whose nobody takes."""

from __future__ import annotations

import pytest

from skerry.model.errors import Overloaded
from skerry.model.limits import Limits
from skerry.wire.admission import Admission

LIMITS = Limits(connections=4, connections_per_address=3, connections_before_login=3)


def test_the_oldest_silent_visitor_goes_for_a_new_one() -> None:
    places: Admission[int] = Admission("oslo", LIMITS)
    assert [places.arrived(number, "127.0.0.1") for number in range(3)] == [None, None, None]
    assert [places.arrived(number, "127.0.0.1") for number in range(3, 6)] == [0, 1, 2]
    places.left(0)  # its end is told, too
    assert places.arrived(6, "127.0.0.1") == 3


def test_one_address_drives_out_its_own_visitors_only() -> None:
    places: Admission[str] = Admission("oslo", LIMITS)
    places.arrived("quiet", "10.0.0.9")
    assert places.arrived("a", "10.0.0.1") is None
    assert places.arrived("b", "10.0.0.1") is None
    assert [places.arrived(name, "10.0.0.1") for name in "cdef"] == ["a", "b", "c", "d"]
    places.logged_in("quiet", is_member=False)
    assert places.arrived("g", "10.0.0.1") is None


def test_members_have_places_of_their_own() -> None:
    places: Admission[str] = Admission("oslo", LIMITS)
    for number in range(3):
        places.arrived(f"client {number}", "10.0.0.1")
        places.logged_in(f"client {number}", is_member=False)
    places.arrived("one more", "10.0.0.1")
    with pytest.raises(Overloaded, match=r"oslo has 3 connections from 10\.0\.0\.1 already") as caught:
        places.logged_in("one more", is_member=False)
    assert "limits.connections_per_address" in caught.value.suggestion
    places.left("one more")
    places.arrived("elsewhere", "10.0.0.2")
    places.logged_in("elsewhere", is_member=False)
    places.arrived("late", "10.0.0.3")
    with pytest.raises(Overloaded, match="oslo has 4 connections already"):
        places.logged_in("late", is_member=False)
    places.left("late")
    for number in range(4):
        places.arrived(f"member {number}", "10.0.0.1")
        places.logged_in(f"member {number}", is_member=True)
    places.arrived("fifth", "10.0.0.1")
    with pytest.raises(Overloaded, match="oslo has 4 connections already"):
        places.logged_in("fifth", is_member=True)
    places.left("fifth")
    places.left("client 0")
    places.arrived("next", "10.0.0.1")
    places.logged_in("next", is_member=False)


def test_tasks_of_this_host_have_no_address() -> None:
    places: Admission[int] = Admission("oslo", LIMITS)
    for number in range(4):
        places.arrived(number, "")
        places.logged_in(number, is_member=False)
