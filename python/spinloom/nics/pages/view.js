// The page of a message's life: panels, drawing, keys and words. It stands behind life.js in one script.
messageLife.view = ((m) => {
  const {at, make, canvases, resize, swatch, keys} = m;
  const data = JSON.parse(at("data").textContent);
  const memory = m.readMemory(data.memory);
  const lives = data.lives.map((life) => {
    const rows = Object.fromEntries(Object.entries(life.rows).map(([unit, row]) => [unit, m.readRow(row)]));
    const read = {...life, rows};
    read.land = m.landings(read, data.size);
    read.curve = m.progress(read.land);
    read.packed = read.staged ? m.progress(m.arrivals(read)) : null;
    return read;
  });
  const end = Math.max(...lives.map((life) => life.time_ps)) * 1.02;
  const state = {view: [0, end], now: end, cell: 0, scroll: 0, picked: null, pinned: null, playing: false, drawMs: 0,
    colour: "packet", shown: []};
  let theme = {};

  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    const [light, other] = [Number(value("--packet-light")), Number(value("--packet-light-2"))];
    const packets = [];
    for (let i = 0; i < m.HUES; ++i) {
      const hue = (255 + 285 * i / (m.HUES - 1)) % 360;
      packets.push(`oklch(${light} 0.15 ${hue.toFixed(1)})`, `oklch(${other} 0.15 ${hue.toFixed(1)})`);
    }
    const units = Object.fromEntries(m.UNITS.map(([unit]) => [unit, value(`--${unit}`)]));
    theme = {packets, units, back: value("--back"), lane: value("--lane"), ink: value("--ink"), soft: value("--soft"),
      line: value("--line"), onMark: value("--on-mark"), whole: value("--whole"), gap: value("--gap"),
      mark: value("--mark"), wait: value("--wait"), packed: value("--packed"), edge: value("--edge"), done: value("--done")};
  }

  function packetColour(first) {
    const packet = Math.floor(first / data.mtu);
    return theme.packets[2 * Math.floor(packet * (m.HUES - 1) / Math.max(1, data.packets - 1)) + packet % 2];
  }

  function colourOf(unit, first, last) {
    if (state.colour === "kind") return theme.units[unit];
    return last - first >= data.size && data.packets > 1 ? theme.whole : packetColour(first);
  }

  // ---- The panels: one a life, each with its times on the left and the host's memory on the right.

  function panel(index) {
    const shown = {life: lives[index]};
    const name = `place ${state.shown.length + 1}`;
    let title;
    if (lives.length > 2) {
      title = make("select", {}, ...lives.map((life, i) => make("option", {value: i, selected: i === index}, life.strategy)));
      title.setAttribute("aria-label", `Strategy in ${name}`);
      title.addEventListener("change", () => { shown.life = lives[Number(title.value)]; fill(shown); layOut(); });
    } else title = make("strong", {}, shown.life.strategy);
    shown.times = canvases("Times: arrows left and right move, + and - zoom, up and down choose a packet");
    shown.memory = canvases("Host memory: arrows left and right choose a block, up and down scroll, + and - zoom");
    shown.about = make("span", {className: "about"});
    shown.bytes = make("span", {className: "bytes"});
    shown.time = make("span", {className: "time"});
    shown.who = make("span", {className: "time"});
    at("lives").append(make("section", {className: "life"},
      make("h2", {}, shown.who, title, shown.time, shown.about),
      make("div", {className: "pair"}, shown.times.box,
        make("div", {className: "memory"}, make("p", {}, shown.bytes), shown.memory.box))));
    listenTimes(shown);
    listenMemory(shown);
    fill(shown);
    return shown;
  }

  function fill(shown) {
    const slowest = Math.max(...lives.map((life) => life.time_ps));
    const gain = slowest / shown.life.time_ps;
    shown.time.textContent = `${m.timeText(shown.life.time_ps)}${gain > 1.005 ? `, ${gain.toFixed(1)} times as fast` : ""}`;
    const who = shown.life.staged ? "The CPU unpacks" : shown.life.rows.hpu ? "sPIN: handlers unpack" : "The NIC alone";
    shown.who.textContent = `${who}:`;
    shown.about.textContent = shown.life.about;
  }

  function layOut() {
    for (const shown of state.shown) {
      shown.plan = m.rowsOf(shown.life, data.hpus);
      shown.times.box.style.height = `${shown.plan.height}px`;
      shown.width = shown.times.box.clientWidth;
      for (const canvas of [shown.times.base, shown.times.top]) resize(canvas, shown.width, shown.plan.height);
      shown.memoryWidth = shown.memory.box.clientWidth;
      shown.memoryHeight = shown.plan.height - 26;
      shown.memory.box.style.height = `${shown.memoryHeight}px`;
      for (const canvas of [shown.memory.base, shown.memory.top]) resize(canvas, shown.memoryWidth, shown.memoryHeight);
    }
    const height = Math.min(...state.shown.map((shown) => shown.memoryHeight));
    if (!state.cell) state.cell = state.fitting = m.fittingCell(memory, Math.max(4, Math.floor(height / ROW_MIN)));
    layMemory();
    drawAll();
  }

  const ROW_MIN = 9, ROW_MAX = 18, ADDRESS = 80;

  function layMemory() {
    state.rows = m.memoryRows(memory, state.cell * m.COLUMNS);
    const height = Math.min(...state.shown.map((shown) => shown.memoryHeight));
    const least = Math.min(ROW_MAX, Math.max(ROW_MIN, Math.floor(height / state.rows.length)));
    const visible = Math.floor(height / least);
    state.scroll = Math.max(0, Math.min(state.scroll, state.rows.length - visible));
    for (const shown of state.shown) {
      shown.row = Math.min(ROW_MAX, Math.floor(shown.memoryHeight / Math.min(visible, state.rows.length)));
      shown.rows = state.rows.slice(state.scroll, state.scroll + visible);
      shown.cells = m.cellsOf(memory, shown.rows, state.cell, shown.life.land);
    }
  }

  // ---- Drawing.

  const toX = (shown, time) =>
    m.GUTTER + (time - state.view[0]) * (shown.width - m.GUTTER - 10) / (state.view[1] - state.view[0]);
  const toTime = (shown, x) =>
    state.view[0] + (x - m.GUTTER) * (state.view[1] - state.view[0]) / (shown.width - m.GUTTER - 10);

  function drawTimes(shown) {
    const pen = shown.times.base.getContext("2d");
    pen.clearRect(0, 0, shown.width, shown.plan.height);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = theme.lane;
    for (const row of shown.plan.rows) pen.fillRect(m.GUTTER, row.y, shown.width - m.GUTTER - 10, row.height);
    drawAxis(pen, shown);
    for (const row of shown.plan.rows) {
      pen.fillStyle = theme.ink;
      pen.textAlign = "left";
      pen.font = "600 11px system-ui, sans-serif";
      const tall = row.height > 26;
      pen.fillText(row.label, 0, row.y + (tall ? row.height / 2 - 2 : 11));
      pen.font = "10px system-ui, sans-serif";
      pen.fillStyle = theme.soft;
      if (tall) pen.fillText(row.about, 0, row.y + row.height / 2 + 11);
      else if (!row.idle) pen.fillText(row.about, m.GUTTER - 7 - pen.measureText(row.about).width, row.y + 11);
      if (row.idle) {
        pen.font = "italic 11px system-ui, sans-serif";
        pen.fillText(row.idle, m.GUTTER + 8, row.y + 11);
      }
      if (row.work) drawWorks(pen, shown, row);
    }
    drawCurve(pen, shown);
  }

  function drawAxis(pen, shown) {
    pen.textAlign = "center";
    const times = m.ticks(...state.view, Math.max(2, (shown.width - m.GUTTER) / 110));
    for (const time of times) {
      const x = toX(shown, time);
      pen.fillStyle = theme.line;
      pen.fillRect(x, m.AXIS - 4, 1, shown.plan.height - m.AXIS);
      pen.fillStyle = theme.soft;
      pen.fillText(m.tickText(time, times[1] - times[0]), Math.min(x, shown.width - 24), 11);
    }
  }

  function drawWorks(pen, shown, row) {
    const work = row.work, right = shown.width - 10, column = new Float64Array(row.lanes).fill(-1);
    const scale = window.devicePixelRatio || 1;
    const height = Math.max(0.5, row.lane - (row.lane >= 3 ? 1 : 0));
    for (const i of m.within(work, ...state.view)) {
      const from = Math.max(m.GUTTER, toX(shown, work.start[i])), to = Math.min(right, toX(shown, work.end[i]));
      const width = to - from, lane = work.lane[i];
      if (width < 1) {
        const pixel = Math.floor(from * scale);
        if (pixel === column[lane]) continue;
        column[lane] = pixel;
      }
      pen.fillStyle = colourOf(row.unit, work.first[i], work.last[i]);
      pen.fillRect(from, row.y + lane * row.lane, Math.max(width - (width > 4 ? 1 : 0), 0.8), height);
      if (row.lane >= 7 && width > 18 && work.count[i] === 1) labelWork(pen, row, work, i, from, width, height);
    }
  }

  function labelWork(pen, row, work, i, from, width, height) {
    const whole = work.last[i] - work.first[i] >= data.size && data.packets > 1;
    const words = {event: "completion event", cpu: "the CPU unpacks", hpu: "completion handler"}[row.unit];
    const bytes = row.unit === "dma" || row.unit === "pcie" ? `${m.count(work.last[i] - work.first[i])} B` : null;
    const always = row.unit === "event" || row.unit === "cpu";
    const text = (whole || always) && words ? words : bytes || `${Math.floor(work.first[i] / data.mtu)}`;
    pen.font = `${Math.min(11, Math.floor(height + 1))}px system-ui, sans-serif`;
    pen.textAlign = "center";
    if (pen.measureText(text).width + 6 > width) return;
    pen.fillStyle = theme.onMark;
    pen.fillText(text, from + width / 2, row.y + work.lane[i] * row.lane + height / 2 + 3.6);
  }

  function drawCurve(pen, shown) {
    if (shown.life.packed) drawArea(pen, shown, shown.life.packed, true, theme.packed);
    drawArea(pen, shown, shown.life.curve, !shown.life.staged, theme.mark);
  }

  function drawArea(pen, shown, curve, inSteps, colour) {
    const row = shown.plan.rows[shown.plan.rows.length - 1], {times, bytes} = curve;
    const y = (value) => row.y + row.height - row.height * value / Math.max(1, data.size);
    const known = shown.life.until_ps === null ? state.view[1] : shown.life.until_ps;
    const right = Math.min(shown.width - 10, Math.max(m.GUTTER, toX(shown, known)));
    const limit = (x) => Math.min(right, Math.max(m.GUTTER, x));
    let last = m.inPlace(curve, state.view[0]), column = -1;
    pen.beginPath();
    pen.moveTo(m.GUTTER, y(last));
    for (let i = m.above(times, state.view[0]); i < times.length && times[i] <= state.view[1]; ++i) {
      const x = limit(toX(shown, times[i])), pixel = Math.floor(2 * x);
      if (inSteps && pixel !== column) pen.lineTo(x, y(last));
      if (pixel !== column || !inSteps) pen.lineTo(x, y(bytes[i]));
      last = bytes[i];
      column = pixel;
    }
    pen.lineTo(right, y(last));
    pen.lineTo(right, row.y + row.height);
    pen.lineTo(m.GUTTER, row.y + row.height);
    pen.fillStyle = colour;
    pen.fill();
  }

  function drawMemory(shown) {
    const pen = shown.memory.base.getContext("2d");
    pen.clearRect(0, 0, shown.memoryWidth, shown.memoryHeight);
    pen.font = "10px system-ui, sans-serif";
    const width = (shown.memoryWidth - ADDRESS) / m.COLUMNS;
    shown.rows.forEach((row, r) => {
      const y = r * shown.row, middle = y + shown.row / 2 + 3;
      pen.textAlign = "right";
      pen.fillStyle = theme.soft;
      if (row.gap !== undefined) {
        pen.textAlign = "left";
        pen.fillText(`⋮ gap of ${m.count(row.gap)} B`, ADDRESS, middle);
        return;
      }
      if (r % 2 === 0 || shown.row > 11) pen.fillText(`+${m.count(row.at)} B`, ADDRESS - 6, middle);
      for (let c = 0; c < m.COLUMNS; ++c) drawCell(pen, shown.cells[r][c], ADDRESS + c * width, y, width - 1, shown.row - 1);
    });
    shown.bytes.textContent = memoryTitle(shown);
  }

  function memoryTitle(shown) {
    const bytes = Math.min(data.size, m.inPlace(shown.life.curve, state.now));
    const part = data.size ? Math.floor(100 * bytes / data.size) : 100;
    const least = shown.life.until_ps !== null && state.now > shown.life.until_ps ? "at least " : "";
    return `Host memory: ${least}${m.count(bytes)} of ${m.count(data.size)} B in place (${part} %)`;
  }

  function drawCell(pen, cell, x, y, width, height) {
    if (!cell) {
      pen.fillStyle = theme.gap;
      pen.fillRect(x, y + height / 2 - 0.5, width, 1);
      return;
    }
    const part = Math.max(0.25, Math.min(1, cell.bytes / state.cell));
    pen.fillStyle = theme.wait;
    pen.fillRect(x, y, width * part, height);
    const done = state.now >= cell.until ? 1 : state.now <= cell.from ? 0 : (state.now - cell.from) / (cell.until - cell.from);
    if (done < 1) {
      pen.strokeStyle = theme.edge;
      pen.lineWidth = 1;
      pen.strokeRect(x + 0.5, y + 0.5, width * part - 1, height - 1);
    }
    if (done === 0) return;
    pen.fillStyle = state.colour === "kind" ? theme.mark : packetColour(cell.first);
    pen.fillRect(x, y + height * (1 - done), width * part, height * done);
  }

  function drawDone(pen, shown) {
    const until = toX(shown, shown.life.until_ps || 0);
    if (shown.life.until_ps !== null && until > m.GUTTER && until < shown.width) {
      pen.font = "italic 11px system-ui, sans-serif";
      pen.fillStyle = theme.soft;
      pen.textAlign = "left";
      pen.fillRect(until, m.AXIS, 1, shown.plan.height - m.AXIS - 5);
      pen.fillText("recorded until here", until + 5, m.AXIS + 34);
    }
    pen.font = "600 11px system-ui, sans-serif";
    const x = toX(shown, shown.life.time_ps);
    if (x >= m.GUTTER && x <= shown.width) {
      pen.fillStyle = theme.done;
      pen.fillRect(x, m.AXIS, 2, shown.plan.height - m.AXIS - 5);
      pen.textAlign = x > shown.width - 110 ? "right" : "left";
      pen.fillText(`done: ${m.timeText(shown.life.time_ps)}`, x + (x > shown.width - 110 ? -5 : 6), m.AXIS + 14);
    }
  }

  // The layer above: what has not happened yet is veiled, what is picked stands out.
  function drawTop(shown) {
    const pen = shown.times.top.getContext("2d"), height = shown.plan.height, right = shown.width - 10;
    pen.clearRect(0, 0, shown.width, height);
    pen.fillStyle = theme.back;
    const picked = state.picked || state.pinned;
    if (picked) {
      pen.globalAlpha = 0.6;
      pen.fillRect(m.GUTTER, m.AXIS, right - m.GUTTER, height - m.AXIS - 48);
      pen.globalAlpha = 1;
      drawPicked(pen, shown, picked);
    }
    const x = Math.min(right, Math.max(m.GUTTER, toX(shown, state.now)));
    if (state.now < end) {
      pen.globalAlpha = 0.68;
      pen.fillStyle = theme.back;
      pen.fillRect(x, m.AXIS, right - x + 10, height - m.AXIS);
      pen.globalAlpha = 1;
      pen.fillStyle = theme.ink;
      pen.fillRect(x - 0.75, m.AXIS - 4, 1.5, height - m.AXIS);
    }
    drawDone(pen, shown);
    drawMemoryTop(shown, picked);
  }

  function drawPicked(pen, shown, picked) {
    for (const row of shown.plan.rows) {
      if (!row.work) continue;
      for (const i of m.overlapping(row.work, picked.first, picked.last)) {
        if (row.work.last[i] - row.work.first[i] >= data.size && data.packets > 1) continue;
        const from = Math.max(m.GUTTER, toX(shown, row.work.start[i]));
        const to = Math.min(shown.width - 10, toX(shown, row.work.end[i]));
        if (to < m.GUTTER || from > shown.width - 10) continue;
        const y = row.y + row.work.lane[i] * row.lane, tall = Math.max(row.lane - 1, 1);
        pen.fillStyle = colourOf(row.unit, row.work.first[i], row.work.last[i]);
        pen.fillRect(from, y, Math.max(2, to - from), tall);
        pen.strokeStyle = theme.ink;
        pen.lineWidth = 1;
        if (row.lane >= 7 && to - from > 18 && row.work.count[i] === 1) labelWork(pen, row, row.work, i, from, to - from, tall);
        if (row.lane >= 3) pen.strokeRect(from + 0.5, y + 0.5, Math.max(2, to - from) - 1, tall - 1);
      }
    }
  }

  function drawMemoryTop(shown, picked) {
    const pen = shown.memory.top.getContext("2d"), width = (shown.memoryWidth - ADDRESS) / m.COLUMNS;
    pen.clearRect(0, 0, shown.memoryWidth, shown.memoryHeight);
    if (!picked) return;
    pen.globalAlpha = 0.6;
    pen.fillStyle = theme.back;
    pen.fillRect(ADDRESS, 0, shown.memoryWidth - ADDRESS, shown.memoryHeight);
    pen.globalAlpha = 1;
    pen.strokeStyle = theme.ink;
    pen.lineWidth = 1;
    shown.cells.forEach((row, r) => row.forEach((cell, c) => {
      if (!cell || cell.first >= picked.last || cell.last <= picked.first) return;
      const x = ADDRESS + c * width;
      drawCell(pen, cell, x, r * shown.row, width - 1, shown.row - 1);
      pen.strokeRect(x + 0.5, r * shown.row + 0.5, width - 2, shown.row - 2);
    }));
  }

  function drawAll() {
    const began = performance.now();
    for (const shown of state.shown) {
      drawTimes(shown);
      drawMemory(shown);
      drawTop(shown);
    }
    state.drawMs = performance.now() - began;
    sayNow();
  }

  function drawTime() {
    for (const shown of state.shown) {
      drawMemory(shown);
      drawTop(shown);
    }
    sayNow();
  }

  function sayNow() {
    at("now").textContent = m.timeText(Math.min(state.now, end));
    at("cursor").value = String(Math.round(1000 * state.now / end));
    at("cursor").setAttribute("aria-valuetext", m.timeText(state.now));
    at("play").textContent = state.playing ? "❚❚ Pause" : "▶ Play";
  }

  // ---- What is picked, and its story.

  function pick(picked, pinned = false) {
    if (pinned) state.pinned = picked;
    else state.picked = picked;
    state.shown.forEach(drawTop);
    tell();
  }

  function tell() {
    const picked = state.picked || state.pinned, box = at("detail");
    box.replaceChildren();
    if (!picked) {
      box.append(make("p", {}, "Point at a packet, a handler, a DMA write or a block of memory to follow it; click "
        + "to keep it. With sPIN, handlers on the NIC put every block in its place while packets still arrive. "
        + "Without, the CPU unpacks the message when all of it has come."));
      return;
    }
    const from = Math.floor(picked.first / data.mtu), to = Math.ceil(picked.last / data.mtu) - 1;
    const packets = to > from ? `packets ${m.count(from)} to ${m.count(to)}` : `packet ${m.count(from)}`;
    box.append(make("p", {}, make("strong", {}, picked.what ? `${picked.what}, of ${packets}` : packets[0].toUpperCase() + packets.slice(1)),
      `: bytes ${m.count(picked.first)} to ${m.count(picked.last - 1)} of the message; ${blocksText(picked)}`));
    for (const {life} of state.shown) {
      box.append(make("p", {}, make("b", {}, `${life.strategy}: `), m.story(life, life.land, picked.first, picked.last, data.size)));
    }
  }

  function blocksText({first, last}) {
    const from = m.above(memory.packed, first) - 1, to = Math.min(memory.offset.length, m.above(memory.packed, last - 1));
    const number = (to - from) * memory.together;
    const about = memory.together > 1 ? "about " : "";
    return `${about}${m.many(number, "block")} in memory, the first at +${m.count(memory.offset[from])} B`;
  }

  function packet(number) {
    const first = Math.max(0, Math.min(data.packets - 1, number)) * data.mtu;
    return {first, last: Math.min(data.size, first + data.mtu)};
  }

  function atTimes(shown, x, y) {
    const time = toTime(shown, x);
    const row = shown.plan.rows.find((each) => each.work && y >= each.y - 2 && y < each.y + each.height + 3);
    if (!row || x < m.GUTTER) return null;
    const lane = Math.max(0, Math.min(row.lanes - 1, Math.floor((y - row.y) / row.lane)));
    const slack = 3 * (state.view[1] - state.view[0]) / shown.width, work = row.work;
    let best = null, nearest = Infinity;
    for (const i of m.within(work, time - slack, time + slack)) {
      const away = Math.max(0, work.start[i] - time, time - work.end[i]) + (work.lane[i] === lane ? 0 : slack / 2);
      if (row.lane >= 3 && work.lane[i] !== lane) continue;
      if (away < nearest) { nearest = away; best = i; }
    }
    if (best === null || (work.last[best] - work.first[best] >= data.size && data.packets > 1)) return null;
    const what = {hpu: `Handler on HPU ${work.names[work.lane[best]]}`, dma: "DMA write", pcie: "DMA write on PCIe"}[row.unit];
    return {first: work.first[best], last: work.last[best], what};
  }

  function atMemory(shown, x, y) {
    const width = (shown.memoryWidth - ADDRESS) / m.COLUMNS;
    const cell = (shown.cells[Math.floor(y / shown.row)] || [])[Math.floor((x - ADDRESS) / width)];
    return cell ? ofCell(cell) : null;
  }

  // The block that lies lowest in the message of those in the cell, as far as its packets are in the cell.
  function ofCell(cell) {
    const group = cell.group, offset = memory.offset[group], past = memory.packed[group + 1];
    const first = Math.max(memory.packed[group], Math.floor(cell.first / data.mtu) * data.mtu);
    const last = Math.min(past, Math.ceil(Math.min(cell.last, past) / data.mtu) * data.mtu);
    const what = memory.together > 1 ? "Blocks" : `Block ${m.count(group)} (${m.count(memory.length[group])} B at +${m.count(offset)})`;
    return {first, last, what, group};
  }

  // ---- Time, zoom and keys.

  function setNow(time) {
    state.now = Math.min(end, Math.max(0, time));
    drawTime();
  }

  function setView(view) {
    state.view = view;
    drawAll();
  }

  function zoom(factor, around = (state.view[0] + state.view[1]) / 2) {
    setView(m.zoomed(state.view, factor, around, end));
  }

  function pan(part) {
    const width = state.view[1] - state.view[0];
    setView(m.moved([state.view[0] + part * width], width, end));
  }

  function play() {
    state.playing = !state.playing;
    if (state.playing && state.now >= end) state.now = 0;
    let last = performance.now();
    const step = (now) => {
      if (!state.playing) return;
      setNow(state.now + end * (now - last) / (1000 * Number(at("speed").value)));
      last = now;
      if (state.now >= end) state.playing = false;
      else requestAnimationFrame(step);
      sayNow();
    };
    if (state.playing) requestAnimationFrame(step);
    sayNow();
  }

  function setCell(cell, middle = 0) {
    const old = state.rows[Math.min(state.rows.length - 1, state.scroll + middle)];
    state.cell = Math.min(Math.max(cell, m.CELL_MIN), Math.max(state.fitting, m.CELL_MIN));
    state.rows = m.memoryRows(memory, state.cell * m.COLUMNS);
    const wanted = old && old.at !== undefined ? old.at : 0;
    const found = state.rows.findIndex((row) => row.at !== undefined && row.at + state.cell * m.COLUMNS > wanted);
    state.scroll = Math.max(0, found - middle);
    layMemory();
    drawTime();
  }

  function scroll(rows) {
    state.scroll += rows;
    layMemory();
    drawTime();
  }

  function nextBlock(step) {
    const old = state.pinned;
    const last = memory.offset.length - 1;
    const group = old && old.group !== undefined ? old.group + step : old ? m.above(memory.packed, old.first) - 1 : 0;
    const here = Math.max(0, Math.min(last, group));
    pick(ofCell({first: memory.packed[here], last: memory.packed[here + 1], group: here}), true);
  }

  const KEYS_BOTH = {
    " ": play,
    Escape: () => { state.picked = null; pick(null, true); },
  };
  const KEYS_TIMES = {
    ArrowLeft: () => pan(-0.15),
    ArrowRight: () => pan(0.15),
    ArrowUp: () => pick(packet((state.pinned ? Math.floor(state.pinned.first / data.mtu) : 1) - 1), true),
    ArrowDown: () => pick(packet((state.pinned ? Math.floor(state.pinned.first / data.mtu) : -1) + 1), true),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    "0": () => setView([0, end]),
  };
  const KEYS_MEMORY = {
    ArrowLeft: () => nextBlock(-1),
    ArrowRight: () => nextBlock(1),
    ArrowUp: () => scroll(-4),
    ArrowDown: () => scroll(4),
    "+": () => setCell(state.cell / 2),
    "=": () => setCell(state.cell / 2),
    "-": () => setCell(state.cell * 2),
    "0": () => { state.scroll = 0; setCell(state.fitting); },
  };

  function listenTimes(shown) {
    const top = shown.times.top;
    let drag = null;
    top.addEventListener("pointermove", (event) => {
      if (drag) {
        drag.far = drag.far || Math.abs(event.offsetX - drag.x) > 3;
        const time = (drag.x - event.offsetX) * (drag.view[1] - drag.view[0]) / (shown.width - m.GUTTER - 10);
        if (drag.far) setView(m.moved([drag.view[0] + time], drag.view[1] - drag.view[0], end));
      } else pick(atTimes(shown, event.offsetX, event.offsetY));
    });
    top.addEventListener("pointerdown", (event) => {
      drag = {x: event.offsetX, view: state.view, far: false};
      top.setPointerCapture(event.pointerId);
    });
    top.addEventListener("pointerup", (event) => {
      if (drag && !drag.far) {
        if (event.offsetY < m.AXIS) setNow(toTime(shown, event.offsetX));
        else pick(atTimes(shown, event.offsetX, event.offsetY), true);
      }
      drag = null;
    });
    top.addEventListener("pointerleave", () => pick(null));
    top.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, toTime(shown, event.offsetX));
    }, {passive: false});
    keys(top, {...KEYS_BOTH, ...KEYS_TIMES});
  }

  function listenMemory(shown) {
    const top = shown.memory.top;
    top.addEventListener("pointermove", (event) => pick(atMemory(shown, event.offsetX, event.offsetY)));
    top.addEventListener("pointerup", (event) => pick(atMemory(shown, event.offsetX, event.offsetY), true));
    top.addEventListener("pointerleave", () => pick(null));
    top.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey) setCell(event.deltaY > 0 ? state.cell * 2 : state.cell / 2, Math.floor(event.offsetY / shown.row));
      else scroll(event.deltaY > 0 ? 3 : -3);
    }, {passive: false});
    keys(top, {...KEYS_BOTH, ...KEYS_MEMORY});
  }

  // ---- Words.

  function legend() {
    const items = [];
    if (state.colour === "packet") {
      const bar = make("span", {className: "swatch wide"});
      bar.style.background = `linear-gradient(to right, ${theme.packets.filter((_, i) => i % 32 === 0).join(", ")})`;
      items.push(make("span", {className: "item"}, bar, "colour: a packet and its blocks, first to last"),
        swatch(theme.whole, "the whole message"));
    } else m.UNITS.forEach(([unit, label]) => items.push(swatch(theme.units[unit], label)));
    items.push(swatch(theme.wait, "memory: to come", "edged"), swatch(theme.gap, "gap: left alone", "thin"),
      swatch(theme.mark, "bytes in place"),
      swatch(theme.packed, "bytes in a buffer, packed"));
    at("legend").replaceChildren(...items);
  }

  function merged() {
    const most = Math.max(...lives.flatMap((life) => Object.values(life.rows).map((row) => row.spans / row.start.length)));
    const said = [];
    if (most > 1.001) said.push(`Where there is too much to draw, one mark stands for up to ${Math.ceil(most)} works.`);
    if (memory.together > 1) said.push(`${m.count(memory.together)} neighbouring blocks are drawn as one.`);
    for (const life of lives.filter((each) => each.until_ps !== null)) {
      said.push(`${life.strategy} was recorded until ${m.timeText(life.until_ps)}; what came later is not drawn.`);
    }
    if (lives.some((life) => !life.exact && life.until_ps === null)) said.push("Some DMA writes are known by their packet only.");
    return said.join(" ");
  }

  function words() {
    const exact = data.size.toLocaleString("en-US");
    at("facts").textContent = `${exact} B in ${m.many(memory.blocks, "block")}, ${m.many(data.packets, "packet")} of up to `
      + `${m.count(data.mtu)} B; ${data.machine}. At line rate it takes ${m.timeText(data.line_time_ps)}.`;
    const shas = lives.map((life) => `${life.strategy} ${life.sha256.slice(0, 12)}`).join(", ");
    at("footer").replaceChildren(
      make("p", {}, "Times are modelled time, from the first byte at the NIC until the host can use the data; they are "
        + "no measurements. Handlers ran as machine code, and every byte of memory, gaps included, was compared with "
        + `what MPI demands. ${merged()}`),
      make("p", {}, "Keys: Tab goes from control to control; in the times ← → move, + − zoom, ↑ ↓ choose a packet, 0 "
        + "shows all; in memory ← → choose a block, ↑ ↓ scroll, + − change the cells; space plays, Esc lets go."),
      make("p", {className: "hash"}, `Datatype: ${data.count > 1 ? `${m.count(data.count)} of ` : ""}${data.type}`),
      make("p", {className: "hash"}, `Result hash: ${data.result_hash}. Memory (SHA-256): ${shas}.`));
  }

  function first() {
    const offload = lives.findIndex((life) => life.strategy === "rw-cp");
    const other = lives.findIndex((life) => !life.staged);
    const upper = offload >= 0 ? offload : other >= 0 ? other : 0;
    const lower = lives.findIndex((life, i) => life.staged && i !== upper);
    const second = lower >= 0 ? lower : lives.findIndex((_, i) => i !== upper);
    return second >= 0 ? [upper, second] : [upper];
  }

  function recolour() {
    readTheme();
    legend();
    drawAll();
  }

  // The part of the address behind # may name a time (in ps) and a packet: a picture of one moment.
  function readAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.has("time")) setNow(Number(wanted.get("time")));
    if (wanted.has("packet")) pick(packet(Number(wanted.get("packet"))), true);
  }

  function begin() {
    at("main").hidden = false;
    readTheme();
    for (const index of first()) state.shown.push(panel(index));
    at("play").addEventListener("click", play);
    at("in").addEventListener("click", () => zoom(0.5));
    at("out").addEventListener("click", () => zoom(2));
    at("fit").addEventListener("click", () => setView([0, end]));
    at("cursor").addEventListener("input", () => setNow(end * Number(at("cursor").value) / 1000));
    at("colour").addEventListener("change", () => { state.colour = at("colour").value; recolour(); });
    addEventListener("resize", () => { state.cell = 0; layOut(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    words();
    legend();
    layOut();
    tell();
    readAddress();
  }

  begin();
  return {state, lives, memory, data, end, theme: () => theme, atTimes, atMemory, toX, toTime, setView, setNow, pick, drawAll};
})(messageLife);
