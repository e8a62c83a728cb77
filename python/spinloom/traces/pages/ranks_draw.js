// The page of ranks over time: how a panel is drawn. It stands between ranks.js and ranks_view.js in one script.
ranksPage.drawing = ((m) => (data, runs, state) => {
  const {make} = m, unit = data.unit_ps;
  let theme = {};

  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    theme = Object.fromEntries(["back", "lane", "ink", "soft", "line", "edge", "accent", "late", "arrow"]
      .map((name) => [name, value(`--${name}`)]));
    theme.onMark = value("--on-mark");
    theme.kinds = data.kinds.map(([kind]) => value(`--${kind}`));
    const tile = make("canvas", {width: 6, height: 6}), pen = tile.getContext("2d");
    pen.strokeStyle = theme.late;
    pen.lineWidth = 1.6;
    for (const shift of [-6, 0, 6]) {
      pen.beginPath();
      pen.moveTo(shift, 6);
      pen.lineTo(shift + 6, 0);
      pen.stroke();
    }
    theme.hatch = pen.createPattern(tile, "repeat");
  }

  const right = (shown) => shown.width - 8;
  const toX = (shown, time) =>
    m.GUTTER + (time - state.view[0]) * (right(shown) - m.GUTTER) / (state.view[1] - state.view[0]);
  const toTime = (shown, x) =>
    state.view[0] + (x - m.GUTTER) * (state.view[1] - state.view[0]) / (right(shown) - m.GUTTER);
  const top = (shown, row) => m.AXIS + row * shown.row;
  const inside = (shown, x) => Math.min(right(shown), Math.max(m.GUTTER, x));

  function draw(shown) {
    const pen = shown.times.base.getContext("2d");
    pen.clearRect(0, 0, shown.width, shown.height);
    drawAxis(pen, shown);
    for (const [track, row] of shown.rowOf) {
      drawLane(pen, shown, track, row);
      drawMarks(pen, shown, track, row);
      if (state.waits) drawWaits(pen, shown, track, row);
    }
    shown.arrows = state.messages ? drawMessages(pen, shown) : 0;
    if (state.path) drawPath(pen, shown);
  }

  function drawAxis(pen, shown) {
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    const times = m.ticks(state.view[0] * unit, state.view[1] * unit, Math.max(2, (shown.width - m.GUTTER) / 110));
    for (const time of times) {
      const x = toX(shown, time / unit);
      pen.fillStyle = theme.line;
      pen.fillRect(x, m.AXIS - 4, 1, shown.height - m.AXIS);
      pen.fillStyle = theme.soft;
      pen.fillText(m.tickText(time, times[1] - times[0]), Math.min(x, shown.width - 24), 11);
    }
  }

  function drawLane(pen, shown, track, row) {
    const run = shown.run, y = top(shown, row), gap = shown.row >= 8 ? 1 : 0;
    pen.fillStyle = theme.lane;
    pen.fillRect(m.GUTTER, y, right(shown) - m.GUTTER, shown.row - gap);
    const step = Math.max(1, Math.ceil(11 / shown.row));
    if ((row + shown.scroll) % step) return;
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillStyle = theme.ink;
    const lane = run.track.lane[track], name = lane && run.lanes[lane] ? run.lanes[lane] : `rank ${run.track.rank[track]}`;
    pen.fillText(lane && !run.lanes[lane] ? `${name}.${lane}` : name, m.GUTTER - 6, y + Math.min(shown.row / 2, 7) + 4);
  }

  function drawMarks(pen, shown, track, row) {
    const run = shown.run, mark = run.mark, y = top(shown, row), height = shown.row - (shown.row >= 8 ? 2 : 1);
    if (run.between && mark.first[track] < mark.first[track + 1]) drawBetween(pen, shown, track, y, height);
    const scale = window.devicePixelRatio || 1;
    let column = -1;
    for (const i of m.within(mark, track, ...state.view)) {
      if (state.hidden.has(mark.kind[i])) continue;
      const from = inside(shown, toX(shown, mark.start[i])), to = inside(shown, toX(shown, mark.end[i]));
      if (to - from < 1) {
        const pixel = Math.floor(from * scale);
        if (pixel === column) continue;
        column = pixel;
      }
      const busy = mark.time[i] > 0 ? Math.max(0.3, mark.busy[i] / mark.time[i]) : 1;
      pen.fillStyle = theme.kinds[mark.kind[i]];
      pen.fillRect(from, y + height * (1 - busy), Math.max(to - from - (to - from > 4 ? 1 : 0), 0.8), height * busy);
      if (shown.row >= 14 && to - from > 40) labelMark(pen, shown, i, from, y, to - from, height);
    }
  }

  // A program computes between its calls: a thin line, so that calls stand out.
  function drawBetween(pen, shown, track, y, height) {
    const mark = shown.run.mark, last = mark.first[track + 1] - 1;
    const from = inside(shown, toX(shown, mark.start[mark.first[track]])), to = inside(shown, toX(shown, mark.end[last]));
    pen.fillStyle = theme.kinds[data.kinds.findIndex(([kind]) => kind === shown.run.between)];
    pen.fillRect(from, y + height / 2 - 1, to - from, 2);
  }

  function labelMark(pen, shown, i, from, y, width, height) {
    const text = shown.run.labels[shown.run.mark.label[i]];
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "left";
    if (pen.measureText(text).width + 8 > width) return;
    pen.fillStyle = theme.onMark;
    pen.fillText(text, from + 4, y + height / 2 + 3.5);
  }

  function drawWaits(pen, shown, track, row) {
    const wait = shown.run.wait, tall = Math.max(2, (shown.row - 2) * 0.42), y = top(shown, row) + shown.row - 2 - tall;
    for (const i of m.within(wait, track, ...state.view)) {
      const from = inside(shown, toX(shown, wait.start[i])), to = inside(shown, toX(shown, wait.end[i]));
      if (to - from < 0.7) continue;
      pen.fillStyle = theme.back;
      pen.fillRect(from, y, to - from, tall);
      pen.fillStyle = shown.row < 8 ? theme.late : theme.hatch;
      pen.fillRect(from, y, to - from, tall);
    }
  }

  function endsOf(shown, i) {
    const run = shown.run, message = run.message;
    const [source, target] = [run.mark.track[message.source[i]], run.mark.track[message.target[i]]];
    if (!shown.rowOf.has(source) || !shown.rowOf.has(target)) return null;
    const middle = (track) => top(shown, shown.rowOf.get(track)) + shown.row / 2;
    return [toX(shown, message.sent[i]), middle(source), toX(shown, message.there[i]), middle(target)];
  }

  function drawArrow(pen, [x, y, toX, toY], head) {
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(toX, toY);
    pen.stroke();
    if (!head) return;
    const angle = Math.atan2(toY - y, toX - x);
    pen.beginPath();
    pen.moveTo(toX, toY);
    for (const turn of [2.7, -2.7]) pen.lineTo(toX + 7 * Math.cos(angle + turn), toY + 7 * Math.sin(angle + turn));
    pen.fill();
  }

  function clipped(pen, shown, draws) {
    pen.save();
    pen.beginPath();
    pen.rect(m.GUTTER, m.AXIS, right(shown) - m.GUTTER, shown.height - m.AXIS);
    pen.clip();
    draws();
    pen.restore();
  }

  // Returns how many messages are in view; more than ARROWS_MAX are not drawn.
  function drawMessages(pen, shown) {
    const message = shown.run.message, found = [];
    let seen = 0;
    for (let i = 0; i < message.sent.length; ++i) {
      if (message.sent[i] > state.view[1] || message.there[i] < state.view[0]) continue;
      if (++seen <= m.ARROWS_MAX) found.push(i);
    }
    if (seen > m.ARROWS_MAX) return seen;
    clipped(pen, shown, () => {
      pen.strokeStyle = pen.fillStyle = theme.arrow;
      pen.lineWidth = 1;
      pen.globalAlpha = found.length > 400 ? 0.45 : 0.8;
      for (const i of found) {
        const ends = endsOf(shown, i);
        if (ends) drawArrow(pen, ends, found.length < 300 && shown.row >= 8);
      }
    });
    return seen;
  }

  function drawPath(pen, shown) {
    const run = shown.run, path = run.path;
    if (!path.start.length) return;
    clipped(pen, shown, () => {
      pen.beginPath();
      let before = null;
      const first = Math.max(0, m.above(path.start, state.view[0]) - 2);
      for (let i = first; i < path.start.length && path.start[i] <= state.view[1]; ++i) {
        const row = shown.rowOf.get(run.trackOf.get(path.rank[i]));
        const y = row === undefined ? null : top(shown, row) + 2;
        if (y !== null) {
          if (before === null) pen.moveTo(toX(shown, path.start[i]), y);
          else pen.lineTo(toX(shown, path.start[i]), y);
          pen.lineTo(toX(shown, path.end[i]), y);
        }
        before = y;
      }
      for (const [colour, wide] of [[theme.back, 3], [theme.late, 0]]) {
        pen.strokeStyle = colour;
        pen.lineWidth = wide + (shown.row >= 8 ? 3 : 2);
        pen.stroke();
      }
    });
  }

  function drawTop(shown) {
    const pen = shown.times.top.getContext("2d"), picked = state.picked || state.pinned;
    pen.clearRect(0, 0, shown.width, shown.height);
    if (!picked || picked.shown !== shown) return;
    const run = shown.run;
    clipped(pen, shown, () => {
      pen.strokeStyle = pen.fillStyle = theme.accent;
      pen.lineWidth = 2;
      if (picked.kind === "mark") {
        for (const i of [...(run.gotBy.get(picked.i) || []), ...(run.sentBy.get(picked.i) || [])].slice(0, 200)) {
          const ends = endsOf(shown, i);
          if (ends) drawArrow(pen, ends, true);
        }
      }
      const row = picked.kind === "step" ? run.path : run[picked.kind];
      const track = picked.kind === "step" ? run.trackOf.get(row.rank[picked.i]) : row.track[picked.i];
      if (!shown.rowOf.has(track)) return;
      const from = toX(shown, row.start[picked.i]), width = Math.max(3, toX(shown, row.end[picked.i]) - from);
      pen.strokeStyle = theme.ink;
      pen.strokeRect(from, top(shown, shown.rowOf.get(track)), width, shown.row - 1);
    });
  }

  return {readTheme, theme: () => theme, toX, toTime, top, right, draw, drawTop};
})(ranksPage);
