"use strict";
// What the scripts of all pages share: numbers, times, and elements of a page.
const pageFrame = (() => {
  // Reads numbers of columns.py: base64, seven bits a byte, zigzag, differences.
  function decode(text) {
    const raw = atob(text), found = [];
    let last = 0, step = 0, scale = 1;
    for (let i = 0; i < raw.length; ++i) {
      const byte = raw.charCodeAt(i);
      step += (byte % 128) * scale;
      if (byte >= 128) { scale *= 128; continue; }
      last += step % 2 ? -(step + 1) / 2 : step / 2;
      found.push(last);
      step = 0;
      scale = 1;
    }
    return Float64Array.from(found);
  }

  // The first index whose number is above `value`.
  function above(numbers, value) {
    let low = 0, high = numbers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[middle] > value) high = middle; else low = middle + 1;
    }
    return low;
  }

  function ticks(from, to, most) {
    const rough = Math.max((to - from) / most, 1), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    const found = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
    return found;
  }

  const UNITS = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3]];

  // The time of a tick, with as many decimals as tell it from its neighbours.
  function tickText(ps, step) {
    if (ps === 0) return "0";
    const [unit, size] = UNITS.find((each) => Math.abs(ps) >= each[1]) || ["ps", 1];
    const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    return `${(ps / size).toFixed(decimals)} ${unit}`;
  }

  function timeText(ps) {
    if (!Number.isFinite(ps)) return "-";
    for (const [unit, size] of UNITS) {
      if (Math.abs(ps) >= size) return `${Number((ps / size).toPrecision(4))} ${unit}`;
    }
    return `${Math.round(ps)} ps`;
  }

  const count = (number) => Math.round(number).toLocaleString("en-US");
  const many = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

  // Zooms [from, to] by a factor around a time, and keeps it within [0, end].
  function zoomed([from, to], factor, around, end) {
    const width = Math.min(Math.max((to - from) * factor, Math.min(1000, end)), end);
    return moved([around - (around - from) * width / (to - from), 0], width, end);
  }

  function moved([from], width, end) {
    const begin = Math.min(Math.max(from, 0), end - width);
    return [begin, begin + width];
  }

  const at = (id) => document.getElementById(id);
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  function canvases(label) {
    const base = make("canvas", {className: "base"}), top = make("canvas", {className: "top", tabIndex: 0});
    top.setAttribute("role", "application");
    top.setAttribute("aria-label", label);
    top.setAttribute("aria-describedby", "detail");
    return {base, top, box: make("div", {className: "plot"}, base, top)};
  }

  function resize(canvas, width, height) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  }

  function swatch(colour, words, look = "") {
    const box = make("span", {className: `swatch ${look}`});
    box.style.background = colour;
    return make("span", {className: "item"}, box, words);
  }

  // What keys do on an element, by their names.
  function keys(element, table) {
    element.addEventListener("keydown", (event) => {
      const act = !event.ctrlKey && !event.metaKey && !event.altKey && table[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }

  return {decode, above, ticks, tickText, timeText, count, many, zoomed, moved, at, make, canvases, resize, swatch, keys};
})();
