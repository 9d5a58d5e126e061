"""`make sparks` reads what pytest reports."""

from __future__ import annotations

from scripts.sparks import Failure, Outcome, allowed, outcome_of

REPORT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"/><testcase name="c"><skipped/></testcase>
<testcase name="d"><failure message="&#10;SiteError: gone&#10;more">trace</failure></testcase>
<testcase name="e"><error message="">trace</error></testcase>
</testsuite></testsuites>"""


def test_what_passed_and_why_others_failed() -> None:
    outcome = outcome_of(REPORT)
    assert outcome == Outcome(2, [Failure("d", "SiteError: gone"), Failure("e", "?")])
    assert str(outcome) == "2 passed, 2 failed"
    assert str(Outcome(3, [])) == "3 passed"


def test_the_locked_release_is_allowed_and_an_old_one_is_not() -> None:
    assert allowed("4.2.1")
    assert not allowed("3.5.9")
