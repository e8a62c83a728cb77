// The page of ranks over time: panels, drawing, keys and words. It stands behind ranks_draw.js in one script.
ranksPage.view = ((m) => {
  const {at, make, canvases, resize, keys} = m;
  const data = JSON.parse(at("data").textContent);
  const unit = data.unit_ps, runs = data.runs.map(m.readRun);
  const end = Math.max(1, ...runs.map((run) => run.end)) * 1.01;
  const state = {view: [0, end], picked: null, pinned: null, hidden: new Set(), order: "rank", ranks: null, shown: [],
    path: true, waits: true, messages: true, drawMs: 0};
  const {readTheme, theme, toX, toTime, top, right, draw, drawTop} = m.drawing(data, runs, state);
  // ---- The panels: one a run, with its times on the left and what they add up to on the right.

  function panel(index) {
    const shown = {run: runs[index], scroll: 0};
    let title;
    if (runs.length > 2) {
      title = make("select", {}, ...runs.map((run, i) => make("option", {value: i, selected: i === index}, run.name)));
      title.setAttribute("aria-label", `Run in place ${state.shown.length + 1}`);
      title.addEventListener("change", () => {
        shown.run = runs[Number(title.value)];
        shown.scroll = 0;
        letGo();
        fill(shown);
        layOut();
      });
    } else title = make("strong", {}, shown.run.name);
    shown.times = canvases("Ranks over time: arrows left and right move, + and - zoom, up and down choose a rank, n and p a "
      + "mark, w a wait, c a step of the critical path");
    shown.time = make("span", {className: "time"});
    shown.about = make("span", {className: "about"});
    shown.beside = make("div", {className: "beside"});
    at("runs").append(make("section", {className: "run"}, make("h2", {}, title, shown.time, shown.about),
      make("div", {className: "pair"}, shown.times.box, shown.beside)));
    listen(shown);
    fill(shown);
    return shown;
  }

  function fill(shown) {
    const run = shown.run, slowest = Math.max(...runs.map((each) => each.end)), gain = slowest / run.end;
    shown.time.textContent = m.timeText(run.end * unit) + (gain > 1.005 ? `, ${gain.toFixed(2)} times as fast` : "");
    shown.about.textContent = run.about;
    shown.beside.replaceChildren(...sharesOf(run), ...pairsOf(shown));
  }

  function sharesOf(run) {
    if (!run.shares.length) return [];
    const rows = run.shares.map(([what, , time]) => {
      const bar = make("span", {});
      bar.style.width = `${100 * time / run.end}%`;
      return make("tr", {}, make("th", {scope: "row"}, what), make("td", {}, m.timeText(time * unit)),
        make("td", {}, `${(100 * time / run.end).toFixed(0)} %`), make("td", {className: "share"}, bar));
    });
    return [make("h3", {}, "The critical path"), make("table", {}, make("tbody", {}, ...rows))];
  }

  function pairsOf(shown) {
    const run = shown.run;
    if (!run.pairs.length) return [];
    const items = run.pairs.map(([waiter, other, time, waits, start, until, ...why]) => {
      const whom = waiter === other ? "itself" : `rank ${m.count(other)}`;
      const button = make("button", {type: "button"}, `rank ${m.count(waiter)} for ${whom}: ${m.timeText(time * unit)} `,
        make("span", {}, `in ${m.many(waits, "wait")}; in the longest ${m.whyText(...why, unit)}`));
      button.addEventListener("click", () => showWait(shown, waiter, start, until));
      return make("li", {}, button);
    });
    return [make("h3", {}, "Who waits for whom"), make("ol", {}, ...items)];
  }

  function showWait(shown, waiter, start, until) {
    const run = shown.run, middle = (start + until) / 2, width = Math.min(end, Math.max(4 * (until - start), 8));
    state.view = m.moved([middle - width / 2, 0], width, end);
    for (let track = run.trackOf.get(waiter); track < run.tracks && run.track.rank[track] === waiter; ++track) {
      const found = m.nearest(run.wait, track, middle, 0);
      if (found >= 0) return pickAndShow(shown, {kind: "wait", i: found}, run.wait.track[found]);
    }
    return drawAll();
  }

  function layOut() {
    const height = Math.max(240, Math.min(640, (innerHeight - 300) / state.shown.length));
    for (const shown of state.shown) {
      shown.tracks = m.tracksOf(shown.run, state.order, state.ranks);
      const rows = Math.max(1, shown.tracks.length);
      shown.row = Math.max(m.ROW_MIN, Math.min(m.ROW_MAX, Math.floor((height - m.AXIS) / rows)));
      shown.rows = Math.min(rows, Math.floor((height - m.AXIS) / shown.row));
      shown.height = m.AXIS + shown.rows * shown.row + 4;
      shown.times.box.style.height = `${shown.height}px`;
      shown.beside.style.setProperty("--tall", `${Math.max(shown.height, 300)}px`);
      shown.width = shown.times.box.clientWidth;
      for (const canvas of [shown.times.base, shown.times.top]) resize(canvas, shown.width, shown.height);
      scrollTo(shown, shown.scroll);
    }
    drawAll();
  }

  function scrollTo(shown, row) {
    shown.scroll = Math.max(0, Math.min(Math.round(row), shown.tracks.length - shown.rows));
    shown.rowOf = new Map();
    for (let i = shown.scroll; i < shown.scroll + shown.rows && i < shown.tracks.length; ++i) {
      shown.rowOf.set(shown.tracks[i], i - shown.scroll);
    }
  }

  // ---- Drawing.

  function drawAll() {
    const began = performance.now();
    for (const shown of state.shown) {
      draw(shown);
      drawTop(shown);
    }
    state.drawMs = performance.now() - began;
    const many = Math.max(0, ...state.shown.map((shown) => shown.arrows));
    const hidden = state.shown.some((shown) => shown.rows < shown.tracks.length);
    at("now").textContent = `${m.timeText(state.view[0] * unit)} to ${m.timeText(Math.min(state.view[1], end / 1.01) * unit)}`
      + (hidden ? `; ${m.count(state.shown[0].rows)} of ${m.count(state.shown[0].tracks.length)} rows: Page ↓ scrolls` : "")
      + (many > m.ARROWS_MAX ? `; ${m.count(many)} messages in view: zoom in to see them` : "");
  }

  // ---- What is picked, and its story.

  const STORIES = {mark: m.markStory, wait: m.waitStory, step: m.stepStory};

  function pick(picked, pinned = false) {
    if (pinned) state.pinned = picked;
    else state.picked = picked;
    state.shown.forEach(drawTop);
    tell();
  }

  function letGo() {
    state.picked = state.pinned = null;
    tell();
  }

  function tell() {
    const picked = state.picked || state.pinned, box = at("detail");
    if (!picked) {
      box.replaceChildren(make("p", {}, "Point at a mark, a wait or a message's end to follow it; click to keep it. The red "
        + "line is the critical path: whatever on it becomes shorter makes the run end sooner."));
      return;
    }
    const [head, rest] = STORIES[picked.kind](picked.shown.run, picked.i, unit);
    box.replaceChildren(make("p", {}, make("strong", {}, head[0].toUpperCase() + head.slice(1))), make("p", {}, rest));
  }

  function atPoint(shown, x, y) {
    const row = Math.floor((y - m.AXIS) / shown.row), track = shown.tracks[row + shown.scroll];
    if (x < m.GUTTER || row < 0 || row >= shown.rows || track === undefined) return null;
    const time = toTime(shown, x), slack = 3 * (state.view[1] - state.view[0]) / shown.width;
    const below = y - top(shown, row) > shown.row * 0.55;
    const wait = state.waits ? m.nearest(shown.run.wait, track, time, 0) : -1;
    const mark = m.nearest(shown.run.mark, track, time, slack);
    if (wait >= 0 && (below || mark < 0 || shown.run.mark.start[mark] > time || shown.run.mark.end[mark] < time)) {
      return {shown, kind: "wait", i: wait};
    }
    return mark >= 0 ? {shown, kind: "mark", i: mark} : null;
  }

  // ---- Time, ranks and keys.

  function setView(view) {
    state.view = view;
    drawAll();
  }

  function zoom(factor, around = (state.view[0] + state.view[1]) / 2) {
    const width = Math.min(Math.max((state.view[1] - state.view[0]) * factor, 8), end);
    const part = (around - state.view[0]) / (state.view[1] - state.view[0]);
    setView(m.moved([around - part * width, 0], width, end));
  }

  function pan(part) {
    const width = state.view[1] - state.view[0];
    setView(m.moved([state.view[0] + part * width, 0], width, end));
  }

  function scrolled(shown, rows) {
    scrollTo(shown, shown.scroll + rows);
    drawAll();
  }

  // Picks something, and moves the view to where it is.
  function pickAndShow(shown, picked, track) {
    const run = shown.run, row = picked.kind === "step" ? run.path : run[picked.kind];
    const place = shown.tracks.indexOf(track);
    if (place >= 0 && !shown.rowOf.has(track)) scrollTo(shown, place - shown.rows / 2);
    const [from, to] = [row.start[picked.i], row.end[picked.i]], width = state.view[1] - state.view[0];
    if (to < state.view[0] || from > state.view[1]) state.view = m.moved([(from + to - width) / 2, 0], width, end);
    state.picked = null;
    state.pinned = {shown, ...picked};
    drawAll();
    tell();
  }

  const pickedIn = (shown, kind) =>
    state.pinned && state.pinned.shown === shown && state.pinned.kind === kind ? state.pinned.i : -1;

  function nextRank(shown, step) {
    const picked = state.pinned && state.pinned.shown === shown ? state.pinned : null;
    const row = picked && picked.kind !== "step" ? shown.run[picked.kind] : null;
    const place = row ? shown.tracks.indexOf(row.track[picked.i]) : -1;
    const next = shown.tracks[Math.max(0, Math.min(shown.tracks.length - 1, place + (place < 0 ? 1 : step)))];
    const middle = row ? (row.start[picked.i] + row.end[picked.i]) / 2 : (state.view[0] + state.view[1]) / 2;
    const found = m.nearest(shown.run.mark, next, middle, Infinity);
    if (found >= 0) pickAndShow(shown, {kind: "mark", i: found}, next);
  }

  function nextMark(shown, step) {
    const old = pickedIn(shown, "mark");
    if (old < 0) return nextRank(shown, 0);
    const mark = shown.run.mark, track = mark.track[old], next = old + step;
    if (next < mark.first[track] || next >= mark.first[track + 1]) return undefined;
    return pickAndShow(shown, {kind: "mark", i: next}, track);
  }

  function nextWait(shown) {
    const wait = shown.run.wait;
    if (!wait.start.length) return;
    if (!shown.run.longest) shown.run.longest = Array.from(wait.time.keys()).sort((a, b) => wait.time[b] - wait.time[a]);
    const longest = shown.run.longest, next = longest[(longest.indexOf(pickedIn(shown, "wait")) + 1) % longest.length];
    pickAndShow(shown, {kind: "wait", i: next}, wait.track[next]);
  }

  function nextStep(shown) {
    const path = shown.run.path, old = pickedIn(shown, "step");
    if (!path.start.length) return;
    const next = old < 0 ? Math.max(0, m.stepAt(path, state.view[0])) : (old + 1) % path.start.length;
    pickAndShow(shown, {kind: "step", i: next}, shown.run.trackOf.get(path.rank[next]));
  }

  function listen(shown) {
    const canvas = shown.times.top;
    let drag = null;
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return pick(atPoint(shown, event.offsetX, event.offsetY));
      drag.far = drag.far || Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) > 3;
      if (!drag.far) return undefined;
      const time = (drag.x - event.offsetX) * (drag.view[1] - drag.view[0]) / (right(shown) - m.GUTTER);
      scrollTo(shown, drag.scroll + (drag.y - event.offsetY) / shown.row);
      return setView(m.moved([drag.view[0] + time, 0], drag.view[1] - drag.view[0], end));
    });
    canvas.addEventListener("pointerdown", (event) => {
      drag = {x: event.offsetX, y: event.offsetY, view: state.view, scroll: shown.scroll, far: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.far) pick(atPoint(shown, event.offsetX, event.offsetY), true);
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => pick(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) scrolled(shown, Math.sign(event.deltaY || event.deltaX) * Math.max(1, Math.floor(shown.rows / 8)));
      else zoom(event.deltaY > 0 ? 1.25 : 0.8, toTime(shown, event.offsetX));
    }, {passive: false});
    keys(canvas, {
      ArrowLeft: () => pan(-0.15),
      ArrowRight: () => pan(0.15),
      ArrowUp: () => nextRank(shown, -1),
      ArrowDown: () => nextRank(shown, 1),
      PageUp: () => scrolled(shown, -shown.rows),
      PageDown: () => scrolled(shown, shown.rows),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => setView([0, end]),
      n: () => nextMark(shown, 1),
      p: () => nextMark(shown, -1),
      w: () => nextWait(shown),
      c: () => nextStep(shown),
      Escape: () => { letGo(); drawAll(); },
    });
  }

  // ---- Words.

  function legend() {
    const used = new Set(runs.flatMap((run) => [...new Set(run.mark.kind)]));
    const buttons = data.kinds.map(([, label], kind) => {
      if (!used.has(kind)) return null;
      const box = make("span", {className: "swatch"});
      box.style.background = theme().kinds[kind];
      const button = make("button", {type: "button"}, box, label);
      button.setAttribute("aria-pressed", String(!state.hidden.has(kind)));
      button.addEventListener("click", () => {
        if (!state.hidden.delete(kind)) state.hidden.add(kind);
        button.setAttribute("aria-pressed", String(!state.hidden.has(kind)));
        drawAll();
      });
      return button;
    });
    const said = [];
    if (runs.some((run) => run.wait.start.length)) said.push("hatched: waits for another rank");
    if (runs.some((run) => run.path.start.length)) said.push("red line: critical path");
    if (runs.some((run) => run.between)) said.push("thin line: the program computes");
    at("legend").replaceChildren(...buttons.filter(Boolean), make("span", {className: "item"}, said.join("; ")));
  }

  function levels() {
    const said = [];
    for (const run of runs) {
      const drawn = run.mark.start.length, name = runs.length > 1 ? `${run.name}: ` : "";
      const each = run.mark.count.reduce((most, number) => Math.max(most, number), 1);
      if (each > 1) said.push(`${name}${m.count(run.operations)} operations are ${m.count(drawn)} marks of up to ${m.count(each)}; a mark's height is the share of its time that is busy.`);
      if (run.left_out) said.push(`${name}${m.many(run.left_out, "message")} are not drawn.`);
      if (run.waits_left_out) said.push(`${name}${m.many(run.waits_left_out, "shorter wait")} are not drawn, but counted.`);
    }
    return said.join(" ");
  }

  function words() {
    at("facts").textContent = data.facts;
    const more = levels();
    at("footer").replaceChildren(
      ...data.notes.map((note) => make("p", {}, note)), ...(more ? [make("p", {}, more)] : []),
      make("p", {}, "Keys: Tab goes from control to control; in the times ← → move, + − zoom, 0 shows all, ↑ ↓ choose a rank, "
        + "n and p the next mark and the one before, w the longest waits in turn, c the steps of the critical path, Page ↑ ↓ "
        + "scroll, Esc lets go. The wheel zooms, with Shift it scrolls; drag to move."));
  }

  function filterRanks() {
    state.ranks = m.ranksOf(at("ranks").value);
    for (const shown of state.shown) shown.scroll = 0;
    layOut();
  }

  function begin() {
    at("main").hidden = false;
    readTheme();
    for (let i = 0; i < Math.min(2, runs.length); ++i) state.shown.push(panel(i));
    at("in").addEventListener("click", () => zoom(0.5));
    at("out").addEventListener("click", () => zoom(2));
    at("fit").addEventListener("click", () => setView([0, end]));
    at("ranks").addEventListener("input", filterRanks);
    at("order").addEventListener("change", () => { state.order = at("order").value; layOut(); });
    for (const name of ["path", "waits", "messages"]) {
      at(name).addEventListener("change", () => { state[name] = at(name).checked; drawAll(); });
    }
    addEventListener("resize", layOut);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); legend(); drawAll(); });
    words();
    legend();
    layOut();
    tell();
  }

  begin();
  return {state, runs, data, end, theme, atPoint, toX, toTime, top, setView, drawAll, layOut};
})(ranksPage);
