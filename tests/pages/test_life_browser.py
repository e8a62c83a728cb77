"""The page of a message's life in a browser: what it shows, its keys, its speed, its contrast."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

import chromium
from conftest import needs_engine
from contrast import MARK, TEXT, contrast
from patience import seconds, until
from spinloom.common import core
from spinloom.common.pages import columns
from spinloom.nics import machines, simulation, sweep
from spinloom.nics.pages import page
from spinloom.nics.sweep import Cell

pytestmark = [
    needs_engine,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no chromium"),
]
VECTOR = "vector(64, 16, 32, double)"
NAMES = ("host-mpitypes", "rw-cp")
HOSTILE = '</script><script>window.hurt=1</script><img src=x onerror="window.hurt=2">'


def text_of(type_text, names=NAMES, spoil=False, **more):
    machine = machines.machine(**more)
    setup = machine.setup(record=("trace",))
    row = simulation.rows_of(type_text)[0]
    outcomes = [sweep.run_cell(core.load(), Cell(row, name), setup) for name in names]
    if spoil:
        row = replace(row, application=HOSTILE, datatype=HOSTILE)
        outcomes = [replace(each, cell=replace(each.cell, row=row)) for each in outcomes]
    about = HOSTILE if spoil else "a NIC"
    return page.build([each for each in outcomes if each.code == "ok"], setup, about, "f" * 64)


@pytest.fixture(scope="module")
def browser():
    with chromium.Chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "life.html"
    path.write_text(text_of(VECTOR), encoding="utf-8")
    return path


@pytest.fixture
def life(browser, written):
    browser.dark(False)
    browser.open(written)
    yield browser
    assert browser.complaints == []
    assert browser.requests == []


def detail(browser):
    return browser.evaluate("document.getElementById('detail').innerText")


def spot(browser, what, panel=0):
    """Where something is in the window; `what` is JavaScript for [canvas, x, y] of the panel `shown`."""
    return browser.evaluate(
        f"(() => {{ const v = messageLife.view, shown = v.state.shown[{panel}], [canvas, x, y] = {what};"
        "const box = canvas.getBoundingClientRect(); return [box.left + x, box.top + y]; })()"
    )


def work_at(browser, unit, number, panel=0):
    return spot(
        browser,
        f"(() => {{ const row = shown.plan.rows.find((each) => each.unit === '{unit}'), i = {number};"
        "const work = row.work, middle = (work.start[i] + work.end[i]) / 2;"
        "return [shown.times.top, v.toX(shown, middle), row.y + (work.lane[i] + 0.5) * row.lane]; })()",
        panel,
    )


def test_it_shows_both_lives_and_says_what_they_are(life):
    text = life.evaluate("document.body.innerText")
    assert "rw-cp" in text
    assert "host-mpitypes" in text
    assert "1.282 µs, 1.6 times as fast" in text
    assert "8,192 B in 64 blocks, 4 packets of up to 2,048 B" in text
    assert "modelled time" in text
    assert "every byte of memory, gaps included, was compared" in text
    assert "f" * 64 in text
    assert "Point at a packet" in detail(life)


def test_a_block_leads_to_its_packet_and_times(life):
    life.move(*spot(life, "[shown.memory.top, 82, 4]"))
    said = detail(life)
    assert "Block 0 (128 B at +0), of packet 0: bytes 0 to 127 of the message" in said
    assert "handler on HPU 0 135.5 ns to 761.7 ns" in said
    assert "1 DMA write 235.5 ns to 240.3 ns" in said
    assert "in its place at 490.3 ns" in said  # 240,286 ps and the latency of PCIe, 250 ns
    assert "packed in a buffer of the host, then unpacked by its CPU" in said


@pytest.mark.parametrize(
    ("unit", "number", "words"),
    [
        ("wire", 2, "Packet 2: bytes 4,096 to 6,143 of the message; 16 blocks in memory"),
        ("hpu", 1, "Handler on HPU 1, of packet 1: bytes 2,048 to 4,095"),
        ("dma", 0, "DMA write, of packet 0: bytes 0 to 127"),
    ],
)
def test_a_packet_a_handler_or_a_write_leads_to_its_blocks(life, unit, number, words):
    life.move(*work_at(life, unit, number))
    assert words in detail(life)
    picked = life.evaluate("[messageLife.view.state.picked.first, messageLife.view.state.picked.last]")
    cells = life.evaluate(
        "messageLife.view.state.shown[0].cells.flat().filter((cell) => cell && cell.first < "
        f"{picked[1]} && cell.last > {picked[0]}).reduce((sum, cell) => sum + cell.bytes, 0)"
    )
    assert cells >= picked[1] - picked[0]


def test_a_click_keeps_what_is_picked_until_escape(life):
    life.click(*work_at(life, "wire", 1))
    life.move(5, 5)
    assert "Packet 1" in detail(life)
    life.evaluate("messageLife.view.state.shown[0].times.top.focus()")
    life.key("Escape")
    assert "Point at a packet" in detail(life)


def test_keys_zoom_move_and_choose(life):
    view = "messageLife.view.state.view"
    whole = life.evaluate(view)
    life.evaluate("messageLife.view.state.shown[0].times.top.focus()")
    life.key("+")
    near = life.evaluate(view)
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2)
    life.key("ArrowRight")
    assert life.evaluate(view)[0] > near[0]
    life.key("ArrowLeft")
    assert life.evaluate(view)[0] == pytest.approx(near[0])
    life.key("-")
    assert life.evaluate(view) == pytest.approx(whole)
    life.key("ArrowDown")
    life.key("ArrowDown")
    assert "Packet 1" in detail(life)
    life.key("ArrowUp")
    assert "Packet 0" in detail(life)
    life.evaluate("messageLife.view.state.shown[0].memory.top.focus()")
    life.key("ArrowRight")
    assert "Block 0 (128 B at +0)" in detail(life)
    life.key("ArrowRight")
    assert "Block 1 (128 B at +256)" in detail(life)


def test_zoom_changes_the_axis(life):
    marks = "messageLife.ticks(...messageLife.view.state.view, 6).map(messageLife.timeText)"
    before = life.evaluate(marks)
    canvas = "messageLife.view.state.shown[0].times.base.toDataURL()"
    picture = life.evaluate(canvas)
    life.evaluate("document.getElementById('in').click()")
    assert life.evaluate(marks) != before
    assert life.evaluate(canvas) != picture


def test_it_plays_and_memory_fills(life):
    life.evaluate("document.getElementById('speed').value = '3'")
    life.evaluate("messageLife.view.setNow(0)")
    bytes_now = "document.querySelector('.bytes').textContent"
    assert "0 of 8,192 B" in life.evaluate(bytes_now)
    life.evaluate("document.getElementById('play').focus()")
    life.key(" ")
    assert until(lambda: "(100 %)" in life.evaluate(bytes_now))
    assert until(lambda: life.evaluate("messageLife.view.state.playing") is False)


def test_memory_fills_as_writes_land(life):
    of = "messageLife.inPlace(messageLife.view.lives[1].curve, {})"
    assert life.evaluate(of.format(490_285)) == 0
    assert life.evaluate(of.format(490_286)) == 128
    assert life.evaluate(of.format("messageLife.view.lives[1].data_time_ps")) == 8192
    assert life.evaluate(of.format("messageLife.view.lives[1].data_time_ps - 1")) < 8192


CONTROLS = "document.querySelectorAll('button, select, input, canvas.top')"


def test_tab_reaches_every_control_in_order(life):
    wanted = life.evaluate(f"{CONTROLS}.length")
    reached = []
    life.evaluate("document.body.focus()")
    for _ in range(wanted + 2):
        life.key("Tab")
        reached.append(life.evaluate(f"[...{CONTROLS}].indexOf(document.activeElement)"))
    assert reached[:wanted] == list(range(wanted))


def test_every_control_has_a_name_and_a_role(life):
    nodes = life.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node["name"]["value"])
        for node in nodes
        if not node.get("ignored") and "role" in node and "name" in node
    ]
    controls = [each for each in named if each[0] in ("button", "combobox", "slider", "application")]
    assert len(controls) == life.evaluate(f"{CONTROLS}.length")
    assert all(name for _, name in controls)
    assert ("heading", f"{VECTOR}: a message's life") in named
    assert life.evaluate("document.documentElement.lang") == "en"


COLOURS = """(() => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  const theme = messageLife.view.theme();
  return {...Object.fromEntries(Object.entries(theme).filter(([, value]) => typeof value === 'string')
      .map(([name, value]) => [name, rgb(value)])),
    packets: theme.packets.map(rgb), units: Object.values(theme.units).map(rgb)};
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_contrast_is_enough(life, dark):
    life.dark(dark)
    until(lambda: (life.evaluate("messageLife.view.theme().back") == "#ffffff") is not dark)
    of = life.evaluate(COLOURS)
    grounds = (of["back"], of["lane"])
    for ground, name in itertools.product(grounds, ("ink", "soft", "done")):
        assert contrast(of[name], ground) >= TEXT, name
    for mark in (*of["packets"], *of["units"], of["whole"]):
        assert contrast(of["onMark"], mark) >= TEXT, mark
        assert min(contrast(mark, ground) for ground in grounds) >= MARK, mark
    assert contrast(of["packed"], of["lane"]) >= MARK
    for name in ("edge", "gap", "packed", "mark"):
        assert contrast(of[name], of["back"]) >= MARK, name


def test_a_hostile_name_runs_nothing(browser, tmp_path):
    path = tmp_path / "hostile.html"
    path.write_text(text_of(VECTOR, spoil=True), encoding="utf-8")
    browser.open(path)
    assert browser.evaluate("window.hurt === undefined") is True
    assert browser.evaluate("document.images.length") == 0
    assert HOSTILE in browser.evaluate("document.getElementById('facts').textContent")
    assert browser.complaints == []
    assert browser.requests == []


def test_the_policy_stops_requests(life):
    life.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    assert any("Content Security Policy" in each for each in life.complaints)
    life.complaints.clear()
    life.requests.clear()


def test_more_than_two_strategies_are_chosen_from(browser, tmp_path):
    path = tmp_path / "many.html"
    path.write_text(text_of(VECTOR, (*NAMES, "seek")), encoding="utf-8")
    browser.open(path)
    browser.evaluate(
        "(() => { const box = document.querySelector('h2 select'); box.value = '2';"
        "box.dispatchEvent(new Event('change')); })()"
    )
    assert browser.evaluate("messageLife.view.state.shown[0].life.strategy") == "seek"
    assert browser.complaints == []


def test_a_hundred_thousand_spans_draw_within_a_second(browser, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(text_of("vector(100000, 2, 4, double)"), encoding="utf-8")
    browser.open(path)
    marks = (
        "messageLife.view.state.shown.flatMap((shown) => shown.plan.rows).reduce((sum, row) => sum + {}, 0)"
    )
    drawn = browser.evaluate(marks.format("(row.work ? row.work.start.length : 0)"))
    stood_for = browser.evaluate(marks.format("(row.work ? row.work.spans : 0)"))
    assert stood_for > 200_000
    assert drawn > 50_000
    browser.evaluate("messageLife.view.drawAll()")
    took = browser.evaluate("messageLife.view.state.drawMs")
    assert took < 1000 * seconds(1), f"{drawn} marks took {took} ms"
    assert browser.complaints == []


@pytest.mark.parametrize("row", [[], [0], [5, 5, 4, -9, 0], [2**51, 0, 127, 128, -(2**51)], list(range(300))])
def test_columns_are_read_as_they_were_written(life, row):
    assert life.evaluate(f"[...messageLife.decode('{columns.text_of(row)}')]") == row


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("m.timeText(0)", "0 ps"),
        ("m.timeText(1281885)", "1.282 µs"),
        ("m.timeText(Infinity)", "-"),
        ("m.ticks(0, 1000, 5)", [0, 200, 400, 600, 800, 1000]),
        ("m.zoomed([0, 10000], 0.5, 10000, 10000)", [5000, 10000]),
        ("m.zoomed([0, 10000], 2, 0, 10000)", [0, 10000]),
        ("m.moved([-5, 0], 100, 1000)", [0, 100]),
        ("m.above([1, 2, 2, 3], 2)", 3),
        ("m.landed({first: [0, 10], last: [10, 20], from: [5, 9], to: [5, 9]}, 8, 12)", [5, 9]),
        ("m.landed({first: [0], last: [100], from: [0], to: [1000]}, 50, 60)", [500, 600]),
        ("m.landed({first: [0], last: [100], from: [7], to: [7]}, 90, 110)[1] === Infinity", True),
        ("m.memoryRows({offset: [0, 1000], length: [10, 10]}, 100)", [{"at": 0}, {"gap": 900}, {"at": 1000}]),
        ("m.many(1, 'block') + m.many(2000, 'block')", "1 block2,000 blocks"),
    ],
)
def test_small_functions(life, expression, value):
    assert life.evaluate(f"((m) => {expression})(messageLife)") == value


def test_a_moment_can_be_named_in_the_address(browser, written):
    browser.open(written, "#time=600000&packet=2")
    assert browser.evaluate("messageLife.view.state.now") == 600_000
    assert "Packet 2" in detail(browser)
    assert browser.complaints == []
