// The page of ranks over time: what its view computes. page.py writes the data; ranks_draw.js and
// ranks_view.js stand behind this.
const ranksPage = (() => {
  const {decode, above, timeText, count, many} = pageFrame;
  const AXIS = 18, GUTTER = 74, ROW_MIN = 4, ROW_MAX = 36, ARROWS_MAX = 4000;

  const table = (columns) => Object.fromEntries(Object.entries(columns).map(([name, text]) => [name, decode(text)]));

  function ended(row) {
    row.end = row.start.map((start, i) => start + row.time[i]);
    return row;
  }

  // Marks and waits of each track lie between first[track] and first[track + 1], in order of time.
  function byTrack(row, tracks) {
    row.first = new Uint32Array(tracks + 1);
    row.track.forEach((track) => { ++row.first[track + 1]; });
    for (let i = 0; i < tracks; ++i) row.first[i + 1] += row.first[i];
    return row;
  }

  function sortedByTrack(row, tracks) {
    const order = Array.from(row.track.keys()).sort((a, b) => row.track[a] - row.track[b] || row.start[a] - row.start[b]);
    for (const name of Object.keys(row)) row[name] = Float64Array.from(order, (i) => row[name][i]);
    return byTrack(row, tracks);
  }

  function readRun(run) {
    const track = table(run.track), tracks = track.rank.length;
    const mark = byTrack(ended(table(run.mark)), tracks);
    const wait = sortedByTrack(ended(table(run.wait)), tracks);
    const message = table(run.message);
    message.there = message.sent.map((sent, i) => sent + message.time[i]);
    const path = ended(table(run.path));
    const trackOf = new Map();
    track.rank.forEach((rank, i) => { if (!trackOf.has(rank)) trackOf.set(rank, i); });
    const sentBy = new Map(), gotBy = new Map();
    const add = (map, key, value) => { if (map.has(key)) map.get(key).push(value); else map.set(key, [value]); };
    message.source.forEach((source, i) => { add(sentBy, source, i); add(gotBy, message.target[i], i); });
    return {...run, track, tracks, mark, wait, message, path, trackOf, sentBy, gotBy};
  }

  // The ranks of a text such as "0-7,12"; null: all. A text that is none gives an empty set.
  function ranksOf(text) {
    if (!text.trim()) return null;
    const found = [];
    for (const part of text.split(",")) {
      const match = /^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(part);
      if (match) found.push([Number(match[1]), Number(match[2] === undefined ? match[1] : match[2])]);
    }
    return found;
  }

  // The tracks to show, in order.
  function tracksOf(run, order, ranks) {
    const all = Array.from({length: run.tracks}, (_, i) => i).filter((i) => ranks === null
      || ranks.some(([first, last]) => run.track.rank[i] >= first && run.track.rank[i] <= last));
    if (order === "waited") all.sort((a, b) => run.track.waited[b] - run.track.waited[a] || a - b);
    return all;
  }

  // The index of the first entry of a track that ends after `time`; entries of a track do not overlap.
  function firstAfter(row, track, time) {
    let low = row.first[track], high = row.first[track + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.end[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  function* within(row, track, from, to) {
    for (let i = firstAfter(row, track, from); i < row.first[track + 1] && row.start[i] <= to; ++i) yield i;
  }

  // The entry of a track at `time`, or the nearest within `slack`; -1: none.
  function nearest(row, track, time, slack) {
    let best = -1, least = slack;
    const here = firstAfter(row, track, time);
    for (const i of [here - 1, here]) {
      if (i < row.first[track] || i >= row.first[track + 1]) continue;
      const away = Math.max(0, row.start[i] - time, time - row.end[i]);
      if (away <= least) { least = away; best = i; }
    }
    return best;
  }

  // The step of the critical path at `time`; -1: none.
  function stepAt(path, time) {
    const i = above(path.start, time) - 1;
    return i >= 0 && path.end[i] > time ? i : -1;
  }

  function rankText(run, track) {
    const lane = run.track.lane[track];
    const name = run.lanes[lane] || (lane ? `${run.between ? "thread" : "CPU"} ${lane}` : "");
    return `rank ${count(run.track.rank[track])}${name ? ` (${name})` : ""}`;
  }

  const whyText = (why, rank, cause, unit) =>
    why.replaceAll("{rank}", count(rank)).replaceAll("{time}", timeText(cause * unit));

  function waitStory(run, i, unit) {
    const wait = run.wait, why = whyText(run.whys[wait.why[i]], wait.cause_rank[i], wait.cause[i], unit);
    const track = wait.track[i];
    const whom = wait.rank[i] === run.track.rank[track] ? "itself" : `rank ${count(wait.rank[i])}`;
    return [`${rankText(run, track)} waits for ${whom}`, `${timeText(wait.start[i] * unit)} to ${
      timeText(wait.end[i] * unit)} (${timeText(wait.time[i] * unit)}): ${why}`];
  }

  function messageStories(run, i, unit) {
    const message = run.message, mark = run.mark, said = [];
    const name = (j) => rankText(run, mark.track[j]);
    const size = (j) => message.size[j] >= 0 ? `${count(message.size[j])} B ` : "";
    const some = (list) => (list || []).slice(0, 4);
    const rest = (list) => list && list.length > 4 ? [`and ${count(list.length - 4)} messages more`] : [];
    for (const j of some(run.gotBy.get(i))) {
      said.push(`${size(j)}left ${name(message.source[j])} at ${timeText(message.sent[j] * unit)} and came at ${
        timeText(message.there[j] * unit)}`);
    }
    said.push(...rest(run.gotBy.get(i)));
    for (const j of some(run.sentBy.get(i))) {
      said.push(`${size(j)}left at ${timeText(message.sent[j] * unit)} and came to ${name(message.target[j])} at ${
        timeText(message.there[j] * unit)}`);
    }
    said.push(...rest(run.sentBy.get(i)));
    return said;
  }

  function markStory(run, i, unit) {
    const mark = run.mark;
    const times = `${timeText(mark.start[i] * unit)} to ${timeText(mark.end[i] * unit)} (${
      timeText(mark.time[i] * unit)}${mark.count[i] > 1 ? `, busy ${timeText(mark.busy[i] * unit)}` : ""})`;
    return [`${rankText(run, mark.track[i])}: ${run.labels[mark.label[i]]}`,
      [times, ...messageStories(run, i, unit)].join(" · ")];
  }

  function stepStory(run, i, unit) {
    const path = run.path;
    return [`Critical path, step ${count(i + 1)} of ${count(path.start.length)}: rank ${count(path.rank[i])}, ${
      run.steps[path.what[i]]}`, `${timeText(path.start[i] * unit)} to ${timeText(path.end[i] * unit)} (${
      timeText(path.time[i] * unit)})`];
  }

  return {...pageFrame, AXIS, GUTTER, ROW_MIN, ROW_MAX, ARROWS_MAX, readRun, ranksOf, tracksOf, firstAfter, within, nearest,
    stepAt, rankText, whyText, waitStory, markStory, stepStory};
})();
