"""The page of ranks over time in a browser: what it shows, its keys, its filters, its speed, its contrast."""

from __future__ import annotations

import pytest

import chromium
import ranks
from conftest import needs_engine
from contrast import MARK, TEXT, contrast
from patience import seconds, until

pytestmark = [
    needs_engine,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no chromium"),
]
HOSTILE = '</script><script>window.hurt=1</script><img src=x onerror="window.hurt=2">'
VIEW = "ranksPage.view"


@pytest.fixture(scope="module")
def browser():
    with chromium.Chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "ranks.html"
    path.write_text(ranks.page_of(ranks.run_of(folder / "chain.goal"), facts="three ranks"), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, written):
    browser.dark(False)
    browser.open(written)
    yield browser
    assert browser.complaints == []
    assert browser.requests == []


def detail(browser):
    return browser.evaluate("document.getElementById('detail').innerText")


def spot(browser, time, row, part=0.5, panel=0):
    """Where a time of a row is in the window; `part` of the row's height from above."""
    return browser.evaluate(
        f"(() => {{ const v = {VIEW}, shown = v.state.shown[{panel}], canvas = shown.times.top;"
        f"const box = canvas.getBoundingClientRect(); return [box.left + v.toX(shown, {time}),"
        f"box.top + v.top(shown, {row}) + {part} * shown.row]; }})()"
    )


def focus(browser, panel=0):
    browser.evaluate(f"{VIEW}.state.shown[{panel}].times.top.focus()")


def test_it_says_what_it_shows(page):
    text = page.evaluate("document.body.innerText")
    for words in ("three ranks", "a note", "111 µs", "The critical path", "Who waits for whom"):
        assert words in text
    assert "rank 2 for rank 1: 109.5 µs in 1 wait; in the longest rank 0 computed for 100 µs of it" in text
    assert "Point at a mark" in detail(page)


def test_a_mark_tells_what_it_is_and_its_message(page):
    page.move(*spot(page, 100_750_000, 0))
    said = detail(page)
    assert "Rank 0: send of 1 B to 1" in said
    assert "100 µs to 101.5 µs (1.5 µs)" in said
    assert "1 B left at 101.5 µs and came to rank 1 at 104 µs" in said


def test_a_wait_tells_for_whom_and_why(page):
    page.move(*spot(page, 50_000_000, 2, 0.8))
    said = detail(page)
    assert "Rank 2 waits for rank 1" in said
    assert "0 ps to 109.5 µs (109.5 µs): rank 0 computed for 100 µs of it" in said


def test_a_click_keeps_what_is_picked_until_escape(page):
    page.click(*spot(page, 50_000_000, 0))
    page.move(5, 5)
    assert "Rank 0: computation of 100000" in detail(page)
    focus(page)
    page.key("Escape")
    assert "Point at a mark" in detail(page)


def test_keys_zoom_move_and_choose(page):
    view = f"{VIEW}.state.view"
    whole = page.evaluate(view)
    focus(page)
    page.key("+")
    near = page.evaluate(view)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2)
    page.key("ArrowRight")
    assert page.evaluate(view)[0] > near[0]
    page.key("0")
    assert page.evaluate(view) == whole
    page.key("ArrowDown")
    assert "Rank 0: " in detail(page)
    page.key("ArrowDown")
    assert "Rank 1: " in detail(page)
    page.key("n")
    assert "Rank 1: send of 1 B to 2" in detail(page)
    page.key("p")
    assert "Rank 1: receive of 1 B from 0" in detail(page)
    page.key("w")
    assert "Rank 2 waits for rank 1" in detail(page)
    page.key("w")
    assert "Rank 1 waits for rank 0" in detail(page)
    page.key("c")
    assert "Critical path, step 1 of" in detail(page)
    assert "rank 0, computations" in detail(page)
    page.key("c")
    assert "Critical path, step 2 of" in detail(page)


def test_a_row_of_the_list_leads_to_the_longest_wait(page):
    page.evaluate("document.querySelectorAll('.beside li button')[1].click()")
    assert "Rank 1 waits for rank 0" in detail(page)


@pytest.mark.parametrize(
    ("text", "rows"),
    [("", [0, 1, 2]), ("1", [1]), ("0-1", [0, 1]), ("2,0", [0, 2]), ("nonsense", []), ("7", []), ("1-", [])],
)
def test_ranks_are_filtered(page, text, rows):
    page.evaluate(
        f"(() => {{ const box = document.getElementById('ranks'); box.value = '{text}';"
        "box.dispatchEvent(new Event('input')); })()"
    )
    assert page.evaluate(f"{VIEW}.state.shown[0].tracks") == rows


def test_kinds_and_layers_are_hidden_and_shown(page):
    picture = f"{VIEW}.state.shown[0].times.base.toDataURL()"
    whole = page.evaluate(picture)
    for control in ("document.querySelector('#legend button')", "document.getElementById('path')"):
        page.evaluate(f"{control}.click()")
        assert page.evaluate(picture) != whole
        page.evaluate(f"{control}.click()")
        assert page.evaluate(picture) == whole
    for name in ("waits", "messages"):
        page.evaluate(f"document.getElementById('{name}').click()")
        assert page.evaluate(picture) != whole
        page.evaluate(f"document.getElementById('{name}').click()")


def test_the_longest_waits_come_first_if_wished(page):
    page.evaluate(
        "(() => { const box = document.getElementById('order'); box.value = 'waited';"
        "box.dispatchEvent(new Event('change')); })()"
    )
    assert page.evaluate(f"{VIEW}.state.shown[0].tracks") == [2, 1, 0]


CONTROLS = "document.querySelectorAll('button, select, input, canvas.top')"


def test_tab_reaches_every_control(page):
    wanted = page.evaluate(f"{CONTROLS}.length")
    reached = set()
    page.evaluate("document.body.focus()")
    for _ in range(wanted + 3):
        page.key("Tab")
        reached.add(page.evaluate(f"[...{CONTROLS}].indexOf(document.activeElement)"))
    assert reached >= set(range(wanted))


def test_every_control_has_a_name(page):
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "combobox", "checkbox", "textbox", "application")
    controls = [
        (node["role"]["value"], node.get("name", {}).get("value"))
        for node in nodes
        if not node.get("ignored") and node.get("role", {}).get("value") in roles
    ]
    assert len(controls) == page.evaluate(f"{CONTROLS}.length")
    assert all(name for _, name in controls), controls


COLOURS = """(() => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  const theme = ranksPage.view.theme();
  return {...Object.fromEntries(Object.entries(theme).filter(([, value]) => typeof value === 'string')
    .map(([name, value]) => [name, rgb(value)])), kinds: theme.kinds.map(rgb)};
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_contrast_is_enough(page, dark):
    page.dark(dark)
    until(lambda: (page.evaluate(f"{VIEW}.theme().back") == "#ffffff") is not dark)
    of = page.evaluate(COLOURS)
    for ground in (of["back"], of["lane"]):
        for name in ("ink", "soft"):
            assert contrast(of[name], ground) >= TEXT, name
        for name in ("late", "arrow", "accent"):
            assert contrast(of[name], ground) >= MARK, name
        for kind in of["kinds"]:
            assert contrast(kind, ground) >= MARK, kind
    for kind in of["kinds"]:
        assert contrast(of["onMark"], kind) >= TEXT, kind


def test_a_hostile_name_runs_nothing(browser, tmp_path):
    run = ranks.run_of(tmp_path / "chain.goal", name=HOSTILE)
    run.marks = [mark._replace(label=HOSTILE) for mark in run.marks]
    run.waits = [wait._replace(why=HOSTILE) for wait in run.waits]
    path = tmp_path / "hostile.html"
    path.write_text(ranks.page_of(run, title=HOSTILE, facts=HOSTILE, notes=[HOSTILE]), encoding="utf-8")
    browser.open(path)
    focus(browser)
    for key in ("w", "n", "c"):
        browser.key(key)
    assert browser.evaluate("window.hurt === undefined") is True
    assert browser.evaluate("document.images.length") == 0
    assert browser.complaints == []
    assert browser.requests == []


def test_runs_share_an_axis_and_are_chosen(browser, tmp_path):
    shown = [
        ranks.pattern(tmp_path, "dissemination", 8, "one"),
        ranks.pattern(tmp_path, "linear_barrier", 8, "other"),
        ranks.pattern(tmp_path, "linear_broadcast", 8, "third"),
    ]
    path = tmp_path / "three.html"
    path.write_text(ranks.page_of(*shown), encoding="utf-8")
    browser.open(path)
    assert browser.evaluate(f"{VIEW}.state.shown.map((shown) => shown.run.name)") == ["one", "other"]
    assert browser.evaluate(f"{VIEW}.end") >= max(run.end for run in shown)
    browser.evaluate(
        "(() => { const box = document.querySelectorAll('h2 select')[1]; box.value = '2';"
        "box.dispatchEvent(new Event('change')); })()"
    )
    assert browser.evaluate(f"{VIEW}.state.shown[1].run.name") == "third"
    assert browser.complaints == []


def test_more_ranks_than_rows_scroll(browser, tmp_path):
    path = tmp_path / "wide.html"
    path.write_text(ranks.page_of(ranks.pattern(tmp_path, "dissemination", 1024)), encoding="utf-8")
    browser.open(path)
    rows = browser.evaluate(f"{VIEW}.state.shown[0].rows")
    assert 40 < rows < 1024
    assert "of 1,024 rows" in browser.evaluate("document.getElementById('now').textContent")
    focus(browser)
    browser.key("PageDown")
    assert browser.evaluate(f"{VIEW}.state.shown[0].scroll") == rows
    assert browser.complaints == []


def test_a_hundred_thousand_marks_draw_within_a_second(browser, tmp_path):
    run = ranks.many_marks(64, 100_032)
    path = tmp_path / "large.html"
    path.write_text(ranks.page_of(run), encoding="utf-8")
    browser.open(path)
    assert browser.evaluate(f"{VIEW}.runs[0].mark.start.length") == len(run.marks) == 100_032
    browser.evaluate(f"{VIEW}.drawAll()")
    took = browser.evaluate(f"{VIEW}.state.drawMs")
    assert took < 1000 * seconds(1), f"{len(run.marks)} marks took {took} ms"
    focus(browser)
    for _ in range(6):
        browser.key("+")
    assert browser.evaluate(f"{VIEW}.state.drawMs") < 1000 * seconds(1)
    assert browser.complaints == []


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("m.ranksOf('')", None),
        ("m.ranksOf('0-3, 9')", [[0, 3], [9, 9]]),
        ("m.tickText(1787000000000, 500000000)", "1.7870 s"),
        ("m.tickText(200000, 100000)", "200 ns"),
        ("m.tickText(0, 5)", "0"),
        ("m.stepAt({start: [0, 10], end: [10, 20]}, 10)", 1),
        ("m.stepAt({start: [0, 10], end: [10, 20]}, 20)", -1),
        ("m.whyText('{rank} took {time}', 1200, 5, 1000)", "1,200 took 5 ns"),
        ("m.nearest({first: [0, 2], start: [0, 20], end: [10, 30]}, 0, 14, 5)", 0),
        ("m.nearest({first: [0, 2], start: [0, 20], end: [10, 30]}, 0, 25, 0)", 1),
        ("m.nearest({first: [0, 2], start: [0, 20], end: [10, 30]}, 0, 15, 4)", -1),
    ],
)
def test_small_functions(page, expression, value):
    assert page.evaluate(f"((m) => {expression})(ranksPage)") == value
