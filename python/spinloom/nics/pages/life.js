// The page of a message's life: what its view computes. page.py writes the data; view.js stands behind this.
const messageLife = (() => {
  const {decode, above, timeText, many} = pageFrame;
  const UNITS = [
    ["wire", "Wire", "packets arrive"],
    ["match", "Matching", "finds the receive"],
    ["buffer", "NIC buffer", "copies the packet"],
    ["scheduler", "Scheduler", "picks an HPU"],
    ["hpu", "HPUs", "run handlers"],
    ["dma", "DMA", "writes asked for"],
    ["pcie", "PCIe", "link is busy"],
    ["event", "Event", "tells the host"],
    ["cpu", "Host CPU", "unpacks"],
  ];
  const ON_NIC = ["buffer", "scheduler", "hpu"];
  const COLUMNS = 32, CELL_MIN = 8, AXIS = 18, GUTTER = 164, HUES = 256;

  function readRow(row) {
    const start = decode(row.start), first = decode(row.first);
    const end = decode(row.time).map((time, i) => start[i] + time);
    const last = decode(row.bytes).map((bytes, i) => first[i] + bytes);
    const longest = end.reduce((most, time, i) => Math.max(most, time - start[i]), 0);
    const lane = decode(row.lane);
    const names = [...new Set(lane)].sort((a, b) => a - b), at = new Map(names.map((name, i) => [name, i]));
    return {start, end, first, last, lane: lane.map((each) => at.get(each)), names, longest, count: decode(row.count),
      spans: row.spans};
  }

  function readMemory(memory) {
    const offset = decode(memory.offset), length = decode(memory.length), data = decode(memory.data);
    const packed = new Float64Array(data.length + 1);
    data.forEach((bytes, i) => { packed[i + 1] = packed[i] + bytes; });
    return {offset, length, data, packed, blocks: memory.blocks, together: memory.together};
  }

  // When which bytes of the message are in their place, by place in the message.
  function landings(life, size) {
    const cpu = life.rows.cpu, dma = life.rows.dma;
    if (life.staged) return {first: [0], last: [size], from: [cpu.start[0]], to: [cpu.end[cpu.end.length - 1]]};
    if (!dma) return {first: [], last: [], from: [], to: []};
    const order = Array.from(dma.first.keys()).sort((a, b) => dma.first[a] - dma.first[b]);
    return {
      first: order.map((i) => dma.first[i]),
      last: order.map((i) => dma.last[i]),
      from: order.map((i) => dma.count[i] > 1 ? dma.start[i] + life.latency_ps : dma.end[i] + life.latency_ps),
      to: order.map((i) => dma.end[i] + life.latency_ps),
    };
  }

  // When the bytes [first, last) of the message begin and end to be in their place.
  function landed(land, first, last) {
    let from = Infinity, to = -Infinity, known = 0;
    for (let i = Math.max(0, above(land.first, first) - 1); i < land.first.length && land.first[i] < last; ++i) {
      if (land.last[i] <= first) continue;
      known += Math.min(last, land.last[i]) - Math.max(first, land.first[i]);
      const bytes = land.last[i] - land.first[i], time = land.to[i] - land.from[i];
      from = Math.min(from, land.from[i] + time * Math.max(0, first - land.first[i]) / bytes);
      to = Math.max(to, land.from[i] + time * Math.min(bytes, last - land.first[i]) / bytes);
    }
    return [from, known + 0.5 > last - first ? to : Infinity];
  }

  // When the bytes are in a buffer of the host, packed, for a life in which the CPU moves them from there.
  function arrivals(life) {
    return landings({...life, staged: false}, 0);
  }

  // Points of the curve of bytes in their place over time.
  function progress(land) {
    const steps = [];
    land.first.forEach((first, i) => {
      if (land.from[i] === land.to[i]) steps.push([land.to[i], land.last[i] - first]);
      else for (let k = 1; k <= 64; ++k) {
        steps.push([land.from[i] + (land.to[i] - land.from[i]) * k / 64, (land.last[i] - first) / 64]);
      }
    });
    steps.sort((a, b) => a[0] - b[0]);
    const times = new Float64Array(steps.length), bytes = new Float64Array(steps.length);
    let sum = 0;
    steps.forEach(([time, more], i) => { times[i] = time; bytes[i] = sum += more; });
    return {times, bytes};
  }

  function inPlace(curve, time) {
    const i = above(curve.times, time);
    return i === 0 ? 0 : curve.bytes[i - 1];
  }

  // Rows of memory that hold data, when a row has `row` bytes; a hole between two of them is one gap row.
  function memoryRows(memory, row) {
    const rows = new Set();
    for (let i = 0; i < memory.offset.length; ++i) {
      const last = Math.floor((memory.offset[i] + Math.max(memory.length[i], 1) - 1) / row);
      for (let at = Math.floor(memory.offset[i] / row); at <= last; ++at) rows.add(at);
    }
    const sorted = Float64Array.from(rows).sort(), found = [];
    sorted.forEach((at, i) => {
      if (i > 0 && at > sorted[i - 1] + 1) found.push({gap: (at - sorted[i - 1] - 1) * row});
      found.push({at: at * row});
    });
    return found;
  }

  // The smallest cell for which the rows of the whole layout fit.
  function fittingCell(memory, rowsMax) {
    let low = Infinity, high = -Infinity;
    memory.offset.forEach((offset, i) => {
      low = Math.min(low, offset);
      high = Math.max(high, offset + memory.length[i]);
    });
    let cell = CELL_MIN;
    while (memory.packed[memory.offset.length] / (cell * COLUMNS) > rowsMax) cell *= 2;
    for (; cell * COLUMNS < high - low; cell *= 2) {
      if (memoryRows(memory, cell * COLUMNS).length <= rowsMax) return cell;
    }
    return cell;
  }

  // Each cell of these rows: its bytes, its part of the message, and when that lands.
  function cellsOf(memory, rows, cell, land) {
    const place = new Map();
    rows.forEach((row, i) => { if (row.at !== undefined) place.set(row.at, i); });
    const cells = rows.map(() => new Array(COLUMNS));
    const rowBytes = cell * COLUMNS;
    for (let i = 0; i < memory.offset.length; ++i) {
      const begin = memory.offset[i], end = begin + memory.length[i], share = memory.data[i] / memory.length[i];
      for (let row = Math.floor(begin / rowBytes) * rowBytes; row < end; row += rowBytes) {
        const index = place.get(row);
        if (index === undefined) continue;
        const last = Math.min(end, row + rowBytes);
        for (let at = Math.max(begin, row); at < last;) {
          const column = Math.floor((at - row) / cell), to = Math.min(last, row + (column + 1) * cell);
          const first = memory.packed[i] + (at - begin) * share, past = memory.packed[i] + (to - begin) * share;
          const [from, until] = landed(land, first, past);
          const old = cells[index][column];
          if (!old) cells[index][column] = {bytes: past - first, first, last: past, from, until, group: i};
          else {
            old.bytes += past - first;
            old.from = Math.min(old.from, from);
            old.until = Math.max(old.until, until);
            if (first < old.first) { old.first = first; old.group = i; }
            old.last = Math.max(old.last, past);
          }
          at = to;
        }
      }
    }
    return cells;
  }

  function rowsOf(life, hpus) {
    const rows = [];
    let y = AXIS + 4;
    const add = (row, height) => { rows.push({...row, y, height}); y += height + 5; };
    for (const [unit, label, about] of UNITS) {
      const work = life.rows[unit];
      if (!work) {
        if (unit === "hpu") add({unit, label, about, idle: "not used: no handler runs"}, 15);
        if (unit === "cpu") add({unit, label, about: "", idle: "free: the program computes"}, 15);
        continue;
      }
      const lanes = work.names.length, most = unit === "hpu" ? 112 : lanes > 1 ? 24 : 15;
      const lane = Math.min(15, most / lanes);
      const busy = unit === "hpu" ? `${lanes} of ${hpus} run handlers` : about;
      add({unit, label, about: busy, work, lanes, lane}, Math.ceil(lanes * lane));
    }
    add({unit: "memory", label: "Host memory", about: "bytes in place"}, 38);
    return {rows, height: y};
  }

  // Indices of the works that lie in [from, to].
  function* within(work, from, to) {
    for (let i = above(work.start, from - work.longest - 1); i < work.start.length && work.start[i] <= to; ++i) {
      if (work.end[i] >= from) yield i;
    }
  }

  function overlapping(work, first, last) {
    const found = [];
    for (let i = 0; work && i < work.first.length; ++i) {
      if (work.first[i] < last && work.last[i] > first) found.push(i);
    }
    return found;
  }

  // Says in one sentence what became of the bytes [first, last) in a life.
  function story(life, land, first, last, size) {
    const said = [];
    const part = (unit) => overlapping(life.rows[unit], first, last).filter(
      (i) => life.rows[unit].last[i] - life.rows[unit].first[i] < size || size <= last - first);
    const span = (unit, indices) => {
      const work = life.rows[unit];
      const from = Math.min(...indices.map((i) => work.start[i])), to = Math.max(...indices.map((i) => work.end[i]));
      return `${timeText(from)} to ${timeText(to)}`;
    };
    const say = (unit, words) => {
      const indices = part(unit);
      if (indices.length) said.push(`${words(indices)} ${span(unit, indices)}`);
    };
    const total = (unit, indices) => indices.reduce((sum, i) => sum + life.rows[unit].count[i], 0);
    say("wire", () => "on the wire");
    say("match", () => "matched");
    say("buffer", () => "copied to NIC memory");
    say("hpu", (indices) => {
      const on = [...new Set(indices.map((i) => life.rows.hpu.names[life.rows.hpu.lane[i]]))];
      return `handler on HPU ${on.length > 4 ? `${on[0]} and ${on.length - 1} others` : on.join(", ")}`;
    });
    say("dma", (indices) => `${many(total("dma", indices), "DMA write")}`);
    if (life.staged) said.push("packed in a buffer of the host, then unpacked by its CPU");
    const [, to] = landed(land, first, last);
    said.push(Number.isFinite(to) ? `in its place at ${timeText(to)}` : "when it is in its place is not recorded");
    return said.join(" · ");
  }

  return {...pageFrame, UNITS, ON_NIC, COLUMNS, CELL_MIN, AXIS, GUTTER, HUES, readRow, readMemory, landings, arrivals,
    landed, progress, inPlace, memoryRows, fittingCell, cellsOf, rowsOf, within, overlapping, story};
})();
