"""Pages of a cursor: numbers, repeats, limits, the last one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from skerry.exchange.input import END, WAIT, Signal
from skerry.exchange.spool import Budget, Entry
from skerry.member.pages import Pages
from skerry.model.errors import SiteError, SkerryError, UserError
from skerry.model.limits import ENTRY_BYTES, KIB, MIB, Limits
from skerry.model.results import Page


class Script:
    """Gives what it is told to, then END for ever."""

    def __init__(self, *items: Entry | Signal | SkerryError) -> None:
        self.items = list(items)

    def poll(self) -> Entry | Signal:
        if not self.items:
            return END
        item = self.items[0]
        if isinstance(item, SkerryError):
            raise item
        return self.items.pop(0)  # type: ignore[return-value]


def entry(letter: str, rows: int = 10, size: int = 100) -> Entry:
    return Entry(letter.encode() * size, rows, size * 2)


def letters(page: Page | Signal) -> str:
    assert isinstance(page, Page)
    return "".join(chr(body[0]) for body in page.batches)


def pages(*items: Entry | Signal | SkerryError) -> Pages:
    return Pages(Script(*items))


def all_pages(made: Pages, rows_max: int, bytes_max: int) -> list[str]:
    found = []
    while not made.is_done:
        found.append(letters(made.poll(made.next_number, rows_max, bytes_max)))
    return found


def test_a_small_result_is_one_page_and_the_last() -> None:
    made = pages(entry("a"), entry("b"))
    page = made.poll(0, 4096, MIB)
    assert isinstance(page, Page)
    assert (letters(page), page.number, page.rows, page.is_last) == ("ab", 0, 20, True)
    assert (made.is_done, made.rows) == (True, 20)


def test_no_rows_are_one_empty_last_page() -> None:
    page = pages().poll(0, 4096, MIB)
    assert page == Page(0, (), 0, True)


def test_a_page_can_be_asked_for_again_with_other_limits_too() -> None:
    made = pages(entry("a"), entry("b"), entry("c"))
    first = made.poll(0, 10, MIB)
    assert made.poll(0, 10, MIB) is first
    assert made.poll(0, 4096, MIB) is first
    assert made.rows == 10
    assert letters(made.poll(1, 10, MIB)) == "b"
    last = made.poll(2, 4096, MIB)
    assert letters(last) == "c"
    assert made.poll(2, 1, 1) is last


@pytest.mark.parametrize(("polled", "asked"), [(0, 1), (0, -1), (1, 2), (2, 0), (2, 3), (3, 1)])
def test_any_other_number_is_refused_and_nothing_is_lost(polled: int, asked: int) -> None:
    made = pages(entry("a"), entry("b"), entry("c"), entry("d"))
    for number in range(polled):
        made.poll(number, 10, MIB)
    made.arrived(polled - 1)
    with pytest.raises(UserError, match=f"page {asked} was asked for; the next one is {polled}"):
        made.poll(asked, 10, MIB)
    assert letters(made.poll(polled, 10, MIB)) == "abcd"[polled]


def test_after_the_last_page_there_is_none() -> None:
    made = pages(entry("a"))
    made.poll(0, 4096, MIB)
    with pytest.raises(UserError):
        made.poll(1, 4096, MIB)


def test_waits_while_nothing_is_there_but_never_holds_rows_back() -> None:
    made = pages(WAIT, entry("a"), WAIT, WAIT, entry("b"), entry("c"))
    assert made.poll(0, 4096, MIB) is WAIT
    page = made.poll(0, 4096, MIB)
    assert isinstance(page, Page)
    assert (letters(page), page.is_last) == ("a", False)
    assert made.poll(1, 4096, MIB) is WAIT
    assert letters(made.poll(1, 4096, MIB)) == "bc"
    assert made.is_done


# rows of each batch (all of 100 bytes), rows_max, bytes_max → the batches of each page
SIZES: list[tuple[Iterable[int], int, int, list[str]]] = [
    ((10, 10, 10), 10, MIB, ["a", "b", "c", ""]),
    ((10, 10, 10), 20, MIB, ["ab", "c"]),
    ((10, 10, 10), 25, MIB, ["ab", "c"]),
    ((10, 10, 10), 1, MIB, ["a", "b", "c", ""]),
    ((50, 10, 10), 20, MIB, ["a", "bc", ""]),
    ((10, 10, 10), 0, 200, ["ab", "c"]),
    ((10, 10, 10), 0, 250, ["ab", "c"]),
    ((10, 10, 10), 0, 1, ["a", "b", "c", ""]),
    ((10, 10, 10), 0, 0, ["a", "b", "c", ""]),
    ((10, 10, 10), -1, 299, ["ab", "c"]),
    ((10, 10, 10), 0, MIB, ["abc"]),
    ((10, 10, 10), 30, 300, ["abc", ""]),
]


@pytest.mark.parametrize(("rows", "rows_max", "bytes_max", "expected"), SIZES)
def test_a_page_holds_at_least_one_batch_and_then_what_fits(
    rows: Iterable[int], rows_max: int, bytes_max: int, expected: list[str]
) -> None:
    made = pages(*(entry(letter, count) for letter, count in zip("abc", rows, strict=True)))
    assert all_pages(made, rows_max, bytes_max) == expected
    assert made.rows == sum(rows)


def test_what_did_not_fit_is_first_in_the_next_page_even_if_the_source_waits() -> None:
    made = pages(entry("a"), entry("b"), WAIT, entry("c"))
    assert letters(made.poll(0, 15, MIB)) == "a"
    assert letters(made.poll(1, 4096, MIB)) == "b"
    assert letters(made.poll(2, 4096, MIB)) == "c"


def test_an_error_is_told_each_time_and_no_page_is_made() -> None:
    made = pages(entry("a"), SiteError("disk full"))
    for _ in range(2):
        with pytest.raises(SiteError, match="disk full"):
            made.poll(0, 4096, MIB)
    assert (made.next_number, made.is_done) == (0, False)


def test_pages_are_kept_until_the_client_has_gone_past_them_and_counted_meanwhile() -> None:
    budget = Budget(MIB, 0)
    made = pages(entry("a"), entry("b"), entry("c"))
    made.count_in(budget, Limits(spool_memory_bytes=budget.memory_bytes))
    sent = [made.poll(number, 10, MIB) for number in range(3)]
    assert budget.memory_used == 3 * (100 + ENTRY_BYTES)
    assert [made.poll(number, 10, MIB) for number in range(3)] == sent
    made.arrived(2)
    assert budget.memory_used == 100 + ENTRY_BYTES
    with pytest.raises(UserError):
        made.poll(1, 10, MIB)
    made.arrived(0)  # said late
    assert made.poll(2, 10, MIB) is sent[2]
    made.close()
    assert budget.memory_used == 0
    assert made.poll(2, 10, MIB) is sent[2]
    made.arrived(3)
    assert budget.memory_used == 0


def test_dropped_pages_are_held_by_nobody() -> None:
    budget = Budget(MIB, 0)
    source = pages(entry("a"), entry("b", size=200), entry("c"))
    source.count_in(budget, Limits(spool_memory_bytes=budget.memory_bytes))
    assert letters(source.poll(0, 0, 150)) == "a"  # "b" was taken from its spool, and did not fit
    assert budget.memory_used == 100 + ENTRY_BYTES
    source.drop()
    assert budget.memory_used == 0
    with pytest.raises(UserError):
        source.poll(0, 0, 150)
    assert letters(source.poll(1, 0, 150)) == "c"


@pytest.mark.parametrize("share", [1, 3, 16])
def test_a_window_of_pages_stays_within_its_half_of_the_memory(share: int) -> None:
    limits = Limits(spool_memory_bytes=4 * MIB)
    assert limits.piece_bytes == 4 * MIB // (4 * limits.window_pages)
    budget = Budget(limits.spool_memory_bytes, MIB)
    made = pages(*(entry("x", size=limits.piece_bytes // share) for _ in range(1000)))
    made.count_in(budget, limits)
    assert budget.pages_bytes == 2 * MIB
    sent = [made.poll(number, 0, 64 * MIB) for number in range(limits.window_pages)]
    sizes = [sum(batch.nbytes for batch in page.batches) for page in sent if isinstance(page, Page)]
    assert len(sizes) == limits.window_pages
    assert sizes[0] >= MIB - limits.piece_bytes  # what the others need not is the first one's
    assert min(sizes) > 0
    assert budget.memory_used == budget.pages_used <= budget.pages_bytes
    budget.take_memory(KIB)  # the other half is the spools'
    assert budget.fits_memory(2 * MIB - 2 * KIB)
    assert not budget.fits_memory(2 * MIB - KIB)
    budget.give_back_memory(KIB)
    made.arrived(limits.window_pages)
    assert budget.pages_used == 0


def test_one_batch_larger_than_the_spools_share_still_has_room_and_who_waits_for_it_is_told() -> None:
    budget = Budget(10 * KIB, 0)
    made = pages(entry("a", size=8 * KIB))
    made.count_in(budget, Limits(spool_memory_bytes=budget.memory_bytes))
    assert budget.fits_memory(8 * KIB)
    assert letters(made.poll(0, 0, MIB)) == "a"
    assert not budget.has_room(8 * KIB)
    told: list[bool] = []
    budget.subscribe(lambda: told.append(budget.has_room(8 * KIB)))
    made.arrived(1)
    assert told == [True]
