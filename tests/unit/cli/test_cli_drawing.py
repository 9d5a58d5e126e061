"""The drawing of a plan: well-formed, complete, and nothing of it outside the picture."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from skerry.catalog.topology import Topology
from skerry.cli.drawing import draw
from skerry.config import Link
from skerry.model.fragment import Count
from skerry.plan.explain import Actual, LinkUse, Ran, describe
from tests.plans.plan_cases import CONFIG, planned

SQL = """SELECT n_name, sum(l_price) AS revenue
FROM lineitem JOIN orders ON l_order = o_id JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id
WHERE o_date >= DATE '1995-01-01' AND n_name <> 'NORWAY' GROUP BY n_name ORDER BY revenue DESC"""
ENDS = (
    ("oslo", "tromso"),
    ("tromso", "oslo"),
    ("bergen", "oslo"),
    ("oslo", "bergen"),
    ("front", "oslo"),
    ("oslo", "front"),
)
CHAIN = Topology(msgspec.structs.replace(CONFIG, links=tuple(Link(*ends, 100.0, 5.0) for ends in ENDS)))


def drawn(sql: str, at: str, topology: Topology | None, **more: Any) -> tuple[ElementTree.Element, list[str]]:
    svg = ElementTree.fromstring(draw(json.loads(json.dumps(describe(planned(sql, at), at, topology, **more)))))
    return svg, [element.text or "" for element in svg.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("at", ["oslo", "bergen", "tromso", "front"])
def test_members_fragments_edges_and_links_are_in_it(at: str) -> None:
    plan = planned(SQL, at)
    svg, texts = drawn(SQL, at, CHAIN)
    assert {"oslo", "bergen", "tromso", "front"} <= set(texts)
    for fragment in plan.fragments:
        assert any(text.startswith(f"fragment {fragment.id}: ") for text in texts)
        hops = [text for text in texts if text.startswith(f"edge {fragment.output.edge}")]
        ways = [CHAIN.route(fragment.member, to) for to in fragment.output.receivers if to != fragment.member]
        assert len(hops) >= sum(len(way) - 1 for way in ways)
    assert texts.count("100 Mbit/s, 5 ms") == 3
    width = float(svg.attrib["width"])
    for rect in svg.iter("{http://www.w3.org/2000/svg}rect"):
        assert 0 <= float(rect.attrib.get("x", "0")) <= width - float(rect.attrib["width"]) + 1


def test_no_line_hides_behind_a_member_between_its_ends() -> None:
    """Rows of the last fragment go back to a relay, and from there to the initiator, past the fragment's member."""
    ends = (("oslo", "bergen"), ("bergen", "tromso"), ("tromso", "bergen"), ("bergen", "front"))
    links = tuple(Link(*each, 100.0, 0.0, 0.5) for each in ends)
    svg, texts = drawn(SQL, "front", Topology(msgspec.structs.replace(CONFIG, links=links)))
    assert "100 Mbit/s, $0.5/GB →" in texts
    paths = [each for each in svg.iter("{http://www.w3.org/2000/svg}path") if each.attrib.get("class")]
    above = [float(each.attrib["d"].split(" L")[1].split()[1]) for each in paths if " L" in each.attrib["d"]]
    rects = svg.iter("{http://www.w3.org/2000/svg}rect")
    top = min(float(each.attrib["y"]) for each in rects if each.attrib.get("class", "").startswith("member"))
    assert len(above) == len(set(above)) >= 2
    assert 40 < min(above) <= max(above) < top


def test_what_was_sent_in_fact_is_told() -> None:
    ran = {fragment.id: Ran(7, 3 << 20, 0.25, (5,)) for fragment in planned(SQL, "oslo").fragments}
    _, texts = drawn(SQL, "oslo", CHAIN, actual=Actual(ran, (LinkUse("oslo", "tromso", 1, 1, 0.0),), 24, 1.5))
    assert any(text.startswith("edge 1: 3.0 MiB") for text in texts)
    assert "in fact 7 rows, 3.0 MiB, 0.25 s, Spark jobs 5" in texts
    assert texts[0].endswith("result at oslo: 24 rows in 1.50 s")


def test_a_count_is_drawn_without_an_edge() -> None:
    plan = msgspec.structs.replace(planned("SELECT o_id FROM orders"), ends_in=Count((1,)))
    assert "result: count of fragment 1" in draw(describe(plan, "oslo"))


def test_one_member_alone_and_text_that_looks_like_markup() -> None:
    plan = describe(planned("SELECT o_id FROM orders WHERE o_note = '<a&b>'"), "oslo")
    plan["fragments"][0]["reason"] = "1 < 2 & 3"
    svg = ElementTree.fromstring(draw(plan))
    assert "because 1 < 2 & 3" in [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]


def test_an_edge_with_several_receivers_is_a_line_to_each() -> None:
    sql = "SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY id DESC LIMIT 10"
    plan = describe(planned(sql, rules="topn"), "oslo")
    assert [each["member"] for each in plan["fragments"][0]["output"]["to"]] == ["oslo", "tromso"]
    svg = ElementTree.fromstring(draw(plan))
    texts = [each.text or "" for each in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("edge 2: ~700 B") == 2
    assert sum(each.attrib.get("class") == "rows" for each in svg.iter()) == 4  # and the parts' results to oslo


def test_headings_stay_inside_what_they_head() -> None:
    """One narrow column, a run to tell of, a long name and every operator there is."""
    name = "the_member_with_the_longest_name_that_a_configuration_may_have"
    plan = describe(planned("SELECT o_id FROM orders"), "oslo")
    plan |= {"initiator": name, "rows": 1_234_567, "seconds": 1234.5, "refused": "leaves: never"}
    plan["finish"]["operators"] = ["merge", "aggregate", "offset 1000000", "limit 1000000"]
    (fragment,) = plan["fragments"]
    fragment["member"], fragment["output"]["to"] = name, [{"member": name}]
    kinds = ["scan", "filter", "join", "union", "aggregate", "window", "distinct", "sort", "limit"]
    fragment["operators"] = kinds
    svg = ElementTree.fromstring(draw(plan))
    texts = list(svg.iter("{http://www.w3.org/2000/svg}text"))
    titles = [each for each in texts if each.attrib["class"] == "title" and float(each.attrib["x"]) < 100]
    headline = f"plan {plan['plan_id'][:12]}, result at {name}: 1,234,567 rows in 1234.50 s (refused)"
    assert "".join(each.text or "" for each in titles).replace(" ", "") == headline.replace(" ", "")
    assert all(24 + 10 * len(each.text or "") < float(svg.attrib["width"]) for each in titles)
    (box,) = (each for each in svg.iter() if each.attrib.get("class", "").startswith("member"))
    assert max(float(each.attrib["y"]) for each in titles) < float(box.attrib["y"])
    heads = [each.text or "" for each in texts if each.attrib["class"] == "head"]
    assert " ".join(map(str.strip, heads)).startswith(f"fragment 1: {', '.join(kinds)} result: merge, aggregate")
    assert max(map(len, heads)) <= 50
