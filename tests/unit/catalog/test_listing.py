"""Listing real files: what Spark would read, and a version that changes with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skerry.catalog.listing import Listing, ListingError, is_hidden, list_table
from skerry.config import TableConfig


def write(root: Path, *names: str, content: str = "x") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def listed(root: Path, path: str, **more: int) -> Listing:
    return list_table(root, TableConfig("oslo", "orders", "parquet", path, shown_path=f"data/{path}"), **more)


def names(root: Path, listing: Listing) -> list[str]:
    return [os.path.relpath(file, root) for file in listing.files]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path.resolve() / "root"


def test_a_file(root: Path) -> None:
    write(root, "a/orders.parquet", content="four")
    listing = listed(root, "a/orders.parquet")
    assert names(root, listing) == ["a/orders.parquet"]
    assert listing.size_bytes == 4
    assert listing.root == str(root / "a")
    assert 0 <= listing.version < 2**63


def test_a_directory_with_partitions_and_hidden_files(root: Path) -> None:
    shown = ["orders/_y=1/p.parquet", "orders/b.parquet", "orders/k=1/j=2/a.parquet", "orders/k=2/a.parquet"]
    hidden = ["_SUCCESS", ".b.parquet.crc", "_delta_log/0.json", ".tmp/x", "k=1/_tmp/x", "c._COPYING_", "_metadata"]
    write(root, *shown, *(f"orders/{name}" for name in hidden))
    (root / "orders" / "empty").mkdir()
    listing = listed(root, "orders")
    assert names(root, listing) == sorted(shown)
    assert listing.root == str(root / "orders")
    assert list(listing.files) == sorted(listing.files)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("y*/*.csv", ["y1/a.csv", "y2/a.csv"]),
        ("y?", ["y1/a.csv", "y2/a.csv", "y2/b.txt"]),
        ("y[2-9]/*", ["y2/a.csv", "y2/b.txt"]),
        ("**/*.txt", ["y2/b.txt"]),
        ("*", ["y1/a.csv", "y2/a.csv", "y2/b.txt"]),
    ],
)
def test_wildcards(root: Path, path: str, expected: list[str]) -> None:
    write(root, "y1/a.csv", "y2/a.csv", "y2/b.txt", "y2/_c.csv", "_y/a.csv", ".y/a.csv")
    assert names(root, listed(root, path)) == expected


def test_a_name_with_brackets_may_be_meant(root: Path) -> None:
    write(root, "a[1].csv", "a1.csv")
    assert names(root, listed(root, "a[1].csv")) == ["a[1].csv"]


@pytest.mark.parametrize("path", ["orders", "orders/*.parquet", "orders/a.parquet", "orders/.x"])
def test_no_file(root: Path, path: str) -> None:
    write(root, "orders/_SUCCESS", "orders/.x")
    with pytest.raises(ListingError) as caught:
        listed(root, path)
    reason = f"no file under data/{path} (check members.oslo.tables.orders.path)"
    assert caught.value.message == f"site oslo: table orders: {reason}"
    assert caught.value.reason == reason
    assert caught.value.member == "oslo"


CHANGES: dict[str, Callable[[Path], object]] = {
    "added": lambda at: write(at, "d.csv"),
    "removed": lambda at: (at / "a.csv").unlink(),
    "longer": lambda at: write(at, "a.csv", content="longer"),
    "touched": lambda at: os.utime(at / "a.csv", ns=(1, 1)),
    "renamed": lambda at: (at / "a.csv").rename(at / "c.csv"),
    "moved": lambda at: (at / "k=1" / "a.csv").rename(at / "k=1" / "b.csv"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_version_changes_with_the_files(root: Path, change: str) -> None:
    write(root, "t/a.csv", "t/b.csv", "t/k=1/a.csv")
    before = listed(root, "t")
    assert listed(root, "t") == before
    CHANGES[change](root / "t")
    assert listed(root, "t").version != before.version


def test_a_hidden_file_does_not_change_the_version(root: Path) -> None:
    write(root, "t/a.csv")
    before = listed(root, "t")
    write(root, "t/_SUCCESS")
    assert listed(root, "t") == before


def test_symlinks_inside_are_followed_once(root: Path) -> None:
    write(root, "real/x.csv", "t/a.csv")
    (root / "t" / "link.csv").symlink_to(root / "real" / "x.csv")
    (root / "t" / "linked").symlink_to(root / "real")
    (root / "real" / "loop").symlink_to(root / "real")
    (root / "t" / "dangling").symlink_to(root / "nowhere")
    assert names(root, listed(root, "t")) == ["t/a.csv", "t/link.csv", "t/linked/x.csv"]


@pytest.mark.parametrize("path", ["t", "t/*", "t/secret.csv", "t/dir/x.csv"])
def test_symlinks_outside_are_refused(root: Path, tmp_path: Path, path: str) -> None:
    write(tmp_path, "outside/x.csv")
    write(root, "t/a.csv")
    (root / "t" / "secret.csv").symlink_to(tmp_path / "outside" / "x.csv")
    (root / "t" / "dir").symlink_to(tmp_path / "outside")
    with pytest.raises(ListingError, match=r"^site oslo: table orders: t/\S+ leads outside data_root \(check"):
        listed(root, path)


def test_a_path_that_leads_out_of_the_root_is_refused(root: Path, tmp_path: Path) -> None:
    write(tmp_path, "rootless/x.csv")
    with pytest.raises(ListingError, match="leads outside data_root"):
        listed(root, "../rootless")


def test_too_many_files(root: Path) -> None:
    write(root, *(f"t/{i}.csv" for i in range(6)))
    assert len(listed(root, "t", files_max=6).files) == 6
    with pytest.raises(ListingError, match=r"more than 5 files under data/t \(see limits.table_files\)"):
        listed(root, "t", files_max=5)


def test_what_vanishes_during_the_listing_is_not_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and directories that go between the directory's listing and the look at them are left out."""
    write(root, "t/a.csv", "t/b.csv", "t/k=1/c.csv")
    scandir = os.scandir

    class Racing:
        """The real directory, after whose reading someone deletes what it named."""

        def __init__(self, path: str) -> None:
            self.scan = scandir(path)

        def __enter__(self) -> Racing:
            self.scan.__enter__()
            return self

        def __exit__(self, *args: object) -> None:
            self.scan.close()
            (root / "t" / "a.csv").unlink(missing_ok=True)
            (root / "t" / "k=1" / "c.csv").unlink(missing_ok=True)
            if (root / "t" / "k=1").exists():
                (root / "t" / "k=1").rmdir()

        def __iter__(self) -> object:
            return iter(list(self.scan))

    monkeypatch.setattr(os, "scandir", Racing)
    assert names(root, listed(root, "t")) == ["t/b.csv"]


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("_a", True),
        (".a", True),
        ("a._COPYING_", True),
        ("_k=1", False),
        (".k=1", True),
        ("a_b.c", False),
        ("a", False),
    ],
)
def test_hidden_names_are_those_of_spark(name: str, hidden: bool) -> None:
    assert is_hidden(name) is hidden
