'use strict';
(() => {
const byId = id => document.getElementById(id);
const meta = JSON.parse(byId('meta').textContent);
const ACCEPTED = 0, REFUSED = 1, STALE = 2, KILL = 3, PAUSE = meta.pause;
const SIGNS = ['accepted', 'refused', 'stale', 'kill'];

// ---- the numbers: see packed.h ----------------------------------------------------------------
function unpack(text) {
  const raw = atob(text);
  let at = 0;
  const number = () => {
    let value = 0, scale = 1, byte;
    do {
      byte = raw.charCodeAt(at++);
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    return value;
  };
  const exact = () => {  // tokens go beyond 2^53
    let value = 0n, shift = 0n, byte;
    do {
      byte = raw.charCodeAt(at++);
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
    } while (byte & 0x80);
    return value & 1n ? -(value >> 1n) - 1n : value >> 1n;
  };
  return meta.lanes.map(names => {
    const held = number(), faults = number(), marks = number();
    const lane = {
      lock: names[0], owners: names[1],
      held: {n: held, from: new Float64Array(held), until: new Float64Array(held), to: new Float64Array(held),
             token: new BigInt64Array(held), last: new BigInt64Array(held), count: new Float64Array(held)},
      faults: {n: faults, from: new Float64Array(faults), to: new Float64Array(faults),
               what: new Uint8Array(faults), count: new Float64Array(faults)},
      marks: {n: marks, time: new Float64Array(marks), sign: new Uint8Array(marks),
              token: new BigInt64Array(marks), count: new Float64Array(marks)},
    };
    let time = 0, token = 0n;
    for (let i = 0, h = lane.held; i < held; ++i) {
      h.from[i] = time += number();
      h.until[i] = time + number();
      h.to[i] = h.until[i] + number();
      h.token[i] = token += exact();
      h.last[i] = token + exact();
      h.count[i] = 1 + number();
    }
    time = 0;
    for (let i = 0, f = lane.faults; i < faults; ++i) {
      f.from[i] = time += number();
      f.to[i] = time + number();
      f.what[i] = number();
      f.count[i] = 1 + number();
    }
    time = 0;
    token = 0n;
    for (let i = 0, m = lane.marks; i < marks; ++i) {
      m.time[i] = time += number();
      m.sign[i] = number();
      m.token[i] = token += exact();
      m.count[i] = 1 + number();
    }
    return lane;
  });
}

const lanes = unpack(byId('packed').textContent);
const whole = Math.max(meta.to, 1);

// Whose lane it is in what is seen, and at one moment.
function ownersIn(lane, from, to) {
  return lane.owners.filter((owner, i) => owner[0] <= to && (i + 1 === lane.owners.length || lane.owners[i + 1][0] > from))
    .map(owner => owner[1]);
}
const ownerAt = (lane, time) => ownersIn(lane, time, time)[0];
function label(lane) {
  const names = ownersIn(lane, view.from, view.to);
  return names.length > 1 ? names[0] + ' and ' + (names.length - 1) + ' more' : names[0];
}

// Where a late write was answered, in order of time.
const late = [];
for (const lane of lanes) {
  for (let i = 0; i < lane.marks.n; ++i) {
    const sign = lane.marks.sign[i];
    if (sign === REFUSED || sign === STALE) late.push(lane.marks.time[i]);
  }
}
late.sort((a, b) => a - b);

// The first of a sorted list that is not below the value.
function lowerBound(list, n, value) {
  let low = 0, high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// ---- the place of things -----------------------------------------------------------------------
const LABEL = 150, ROW = 30, GROUP = 22, AXIS = 26, PAD = 6;
const rows = [];  // {lane, y} or {title, y}
let height = PAD;
{
  const grouped = new Set(lanes.map(lane => lane.lock)).size > 1;
  let group = null;
  for (const lane of lanes) {
    if (grouped && lane.lock !== group) {
      group = lane.lock;
      rows.push({title: group === '' ? 'servers and network' : 'lock ' + group, y: height});
      height += GROUP;
    }
    rows.push({lane, y: height});
    height += ROW;
  }
  height += AXIS;
}

const timeline = byId('timeline'), overview = byId('overview');
let view = {from: 0, to: whole};
let width = 0;
const plotWidth = () => Math.max(width - LABEL - 12, 50);
const xOf = time => LABEL + (time - view.from) / (view.to - view.from) * plotWidth();
const timeAt = x => view.from + (x - LABEL) / plotWidth() * (view.to - view.from);

function prepare(canvas, cssHeight) {
  const scale = window.devicePixelRatio || 1;
  const cssWidth = canvas.parentElement.clientWidth || 1000;
  canvas.style.height = cssHeight + 'px';
  canvas.width = Math.round(cssWidth * scale);
  canvas.height = Math.round(cssHeight * scale);
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
  pen.textBaseline = 'middle';
  return pen;
}

let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['paper', 'ink', 'soft', 'line', 'panel', 'held', 'held-ink', 'believed', 'believed-line',
                      'frozen', 'other', 'accepted', 'refused', 'stale', 'kill', 'window']) {
    colours[name] = style.getPropertyValue('--' + name).trim();
  }
}

function hatch(pen) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const ink = tile.getContext('2d');
  ink.strokeStyle = colours.frozen;
  ink.lineWidth = 1.6;
  ink.beginPath();
  for (const shift of [-8, 0, 8]) {
    ink.moveTo(shift, 8);
    ink.lineTo(shift + 8, 0);
  }
  ink.stroke();
  return pen.createPattern(tile, 'repeat');
}

function microsText(micros, step) {
  const digits = step >= 1e6 ? 0 : Math.min(6, Math.ceil(-Math.log10(step / 1e6)));
  return (micros / 1e6).toFixed(digits) + ' s';
}

// ---- drawing -----------------------------------------------------------------------------------
let drawn = 0;  // pieces in the last picture: bounded by its width, not by the length of the drill

function drawHeld(pen, held, y, labels) {
  const start = Math.max(lowerBound(held.from, held.n, view.from) - 1, 0);
  let painted = -1;  // the last column that is full: more would not be seen
  for (let i = start; i < held.n && held.from[i] <= view.to; ++i) {
    if (held.to[i] < view.from) continue;
    const left = Math.max(xOf(held.from[i]), LABEL), right = Math.min(xOf(held.to[i]), LABEL + plotWidth());
    if (right < painted) continue;
    const middle = Math.min(Math.max(xOf(held.until[i]), left), right);
    pen.fillStyle = colours.held;
    pen.fillRect(left, y + 8, Math.max(middle - left, held.until[i] > held.from[i] ? 0.7 : 0), 14);
    ++drawn;
    if (held.to[i] > held.until[i]) {
      pen.fillStyle = colours.believed;
      pen.fillRect(middle, y + 8, Math.max(right - middle, 0.7), 14);
      ++drawn;
      if (right - middle > 4) {
        pen.strokeStyle = colours['believed-line'];
        pen.setLineDash([3, 2]);
        pen.strokeRect(middle + 0.5, y + 8.5, right - middle - 1, 13);
        pen.setLineDash([]);
      }
    }
    painted = Math.floor(Math.max(right, left + 0.7));
    const text = tokens(held, i), room = middle - left;
    if (room > 16 && pen.measureText(text).width + 10 < room) labels.push([text, left + 3, y]);
  }
}

// Above the faults, which would make them hard to read.
function drawLabels(pen, labels) {
  for (const [text, x, y] of labels) {
    pen.fillStyle = colours.held;
    pen.fillRect(x, y + 9, pen.measureText(text).width + 4, 12);
    pen.fillStyle = colours['held-ink'];
    pen.fillText(text, x + 2, y + 15.5);
  }
}

function tokens(held, i) {
  if (held.last[i] === 0n) return '';
  return held.count[i] > 1 ? held.token[i] + '\u2026' + held.last[i] : String(held.token[i]);
}

function drawFaults(pen, faults, y, pattern) {
  let painted = -1;
  for (let i = 0; i < faults.n && faults.from[i] <= view.to; ++i) {
    if (faults.to[i] < view.from) continue;
    const left = Math.max(xOf(faults.from[i]), LABEL), right = Math.min(xOf(faults.to[i]), LABEL + plotWidth());
    if (right < painted) continue;
    const wide = Math.max(right - left, 1);
    if (faults.what[i] === PAUSE) {
      pen.fillStyle = pattern;
      pen.fillRect(left, y + 3, wide, 24);
      pen.fillStyle = colours.frozen;
      pen.fillRect(left, y + 3, wide, 1.5);
      pen.fillRect(left, y + 25.5, wide, 1.5);
    } else {
      pen.fillStyle = colours.other;
      pen.globalAlpha = 0.55;
      pen.fillRect(left, y + 3, wide, 24);
      pen.globalAlpha = 1;
      const name = meta.faults[faults.what[i]];
      if (pen.measureText(name).width + 8 < wide) {
        pen.fillStyle = colours.ink;
        pen.fillText(name, left + 4, y + 15.5);
      }
    }
    ++drawn;
    painted = Math.floor(left + wide);
  }
}

function drawSign(pen, sign, x, y) {
  pen.lineWidth = 2;
  if (sign === ACCEPTED) {
    pen.fillStyle = colours.accepted;
    pen.fillRect(x - 1, y + 19, 2, 9);
    pen.beginPath();
    pen.arc(x, y + 19.5, 2.6, 0, 7);
    pen.fill();
  } else if (sign === REFUSED) {
    for (const [ink, line] of [[colours.paper, 5], [colours.refused, 2.2]]) {
      pen.strokeStyle = ink;
      pen.lineWidth = line;
      pen.beginPath();
      pen.moveTo(x - 4.5, y + 10.5);
      pen.lineTo(x + 4.5, y + 19.5);
      pen.moveTo(x + 4.5, y + 10.5);
      pen.lineTo(x - 4.5, y + 19.5);
      pen.stroke();
    }
  } else if (sign === STALE) {
    pen.fillStyle = colours.stale;
    pen.strokeStyle = colours.paper;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x, y + 3);
    pen.lineTo(x + 8, y + 20);
    pen.lineTo(x - 8, y + 20);
    pen.closePath();
    pen.stroke();
    pen.fill();
    pen.fillStyle = colours.paper;
    pen.fillRect(x - 1, y + 9, 2, 6);
    pen.fillRect(x - 1, y + 16.5, 2, 2);
  } else {
    pen.fillStyle = colours.kill;
    pen.fillRect(x - 1.2, y + 3, 2.4, 24);
    pen.fillRect(x - 5, y + 8, 10, 2.4);
  }
  pen.lineWidth = 1;
}

function drawMarks(pen, marks, y, signs) {  // the grave ones last, above the others
  const start = lowerBound(marks.time, marks.n, view.from), end = lowerBound(marks.time, marks.n, view.to + 1);
  for (const sign of signs) {
    let painted = -9;
    for (let i = start; i < end; ++i) {
      if (marks.sign[i] !== sign) continue;
      const x = xOf(marks.time[i]);
      if (x - painted < (sign === ACCEPTED ? 2 : 6)) continue;
      drawSign(pen, sign, x, y);
      ++drawn;
      painted = x;
    }
  }
}

// ---- from far away: shares of the time instead of single leases --------------------------------
const COLUMN = 3;

function visible(lane) {
  const {held, faults, marks} = lane;
  const count = list => lowerBound(list, list.length, view.to) - lowerBound(list, list.length, view.from);
  return count(held.from) + count(faults.from) + count(marks.time);
}
const isDense = lane => visible(lane) > plotWidth() / 5;

// Adds to each column the share of it that lies in the span.
function addShare(shares, from, to) {
  const scale = shares.length / (view.to - view.from);
  const left = Math.max((from - view.from) * scale, 0), right = Math.min((to - view.from) * scale, shares.length);
  for (let i = Math.floor(left); i < right; ++i) shares[i] += Math.min(right, i + 1) - Math.max(left, i);
}

function sumUp(lane) {
  const n = Math.ceil(plotWidth() / COLUMN);
  const sums = {n, held: new Float64Array(n), believed: new Float64Array(n), fault: new Float64Array(n),
                refused: new Float64Array(n), most: 1};
  const {held, faults, marks} = lane;
  for (let i = Math.max(lowerBound(held.from, held.n, view.from) - 1, 0); i < held.n && held.from[i] <= view.to; ++i) {
    addShare(sums.held, held.from[i], held.until[i]);
    if (held.to[i] > held.until[i]) addShare(sums.believed, held.until[i], held.to[i]);
  }
  for (let i = 0; i < faults.n && faults.from[i] <= view.to; ++i) addShare(sums.fault, faults.from[i], faults.to[i]);
  const scale = n / (view.to - view.from);
  for (let i = lowerBound(marks.time, marks.n, view.from); i < marks.n && marks.time[i] < view.to; ++i) {
    if (marks.sign[i] !== REFUSED) continue;
    const column = Math.floor((marks.time[i] - view.from) * scale);
    sums.refused[column] += marks.count[i];
    sums.most = Math.max(sums.most, sums.refused[column]);
  }
  return sums;
}

function drawDense(pen, lane, y) {
  const sums = sumUp(lane), wide = plotWidth() / sums.n, high = ROW - 10, floor = y + ROW - 3;
  for (let i = 0; i < sums.n; ++i) {
    const x = LABEL + i * wide, held = Math.min(sums.held[i], 1) * high;
    const believed = Math.min(sums.believed[i], 1) * high;
    pen.fillStyle = colours.held;
    pen.fillRect(x, floor - held, wide, held);
    pen.fillStyle = colours.believed;
    pen.fillRect(x, floor - held - believed, wide, believed);
    pen.fillStyle = colours.frozen;
    const fault = Math.min(sums.fault[i], 1) * high;
    if (fault > 0) pen.fillRect(x, floor - fault, wide, 1.2);
    if (sums.refused[i] > 0) {
      pen.fillStyle = colours.refused;
      pen.globalAlpha = 0.35 + 0.65 * sums.refused[i] / sums.most;
      pen.fillRect(x, y + 1, wide - 0.6, 4);
      pen.globalAlpha = 1;
    }
    drawn += 4;
  }
}

function niceStep(span, wanted) {
  const raw = span / wanted, power = Math.pow(10, Math.floor(Math.log10(raw)));
  for (const step of [1, 2, 5, 10]) if (step * power >= raw) return Math.max(step * power, 1);
  return 10 * power;
}

function drawAxis(pen) {
  const step = niceStep(view.to - view.from, plotWidth() / 110);
  const bottom = height - AXIS;
  pen.fillStyle = colours.soft;
  pen.textAlign = 'center';
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const x = xOf(time);
    pen.fillStyle = colours.line;
    pen.fillRect(x, 0, 1, bottom);
    pen.fillStyle = colours.soft;
    pen.fillText(microsText(time, step), Math.min(Math.max(x, LABEL + 16), width - 26), bottom + 13);
  }
  pen.textAlign = 'left';
}

function shortened(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && pen.measureText(letters.join('') + '\u2026').width > room) letters.pop();
  return letters.join('') + '\u2026';
}

function drawTimeline() {
  width = timeline.parentElement.clientWidth || 1000;
  const pen = prepare(timeline, height);
  pen.fillStyle = colours.paper;
  pen.fillRect(0, 0, width, height);
  drawAxis(pen);
  const pattern = hatch(pen);
  drawn = 0;
  let far = false;
  for (const row of rows) {
    if (!row.lane) {
      pen.fillStyle = colours.panel;
      pen.fillRect(0, row.y, width, GROUP - 2);
      pen.fillStyle = colours.ink;
      pen.fillText(shortened(pen, row.title, width - 24), 10, row.y + GROUP / 2);
      continue;
    }
    pen.fillStyle = colours.soft;
    pen.fillText(shortened(pen, label(row.lane), LABEL - 22), 10, row.y + 15);
    pen.fillStyle = colours.line;
    pen.fillRect(LABEL, row.y + 14.5, plotWidth(), 1);
    if (isDense(row.lane)) {
      far = true;
      drawDense(pen, row.lane, row.y);
      continue;
    }
    const labels = [];
    drawHeld(pen, row.lane.held, row.y, labels);
    drawFaults(pen, row.lane.faults, row.y, pattern);
    drawLabels(pen, labels);
  }
  // Above all lanes, so that nothing covers them.
  for (const row of rows) {
    if (row.lane) drawMarks(pen, row.lane.marks, row.y, isDense(row.lane) ? [KILL, STALE] : [ACCEPTED, REFUSED, KILL, STALE]);
  }
  timeline.dataset.drawn = drawn;
  byId('shown').textContent = microsText(view.from, 1000) + ' to ' + microsText(view.to, 1000) + ' of ' +
    microsText(whole, 1000);
  byId('far').hidden = !far;
}

// The whole drill: how many late writes at a time, and how much was frozen.
let columns = null;
function countColumns(n) {
  const counted = {n, refused: new Float64Array(n), stale: new Float64Array(n), frozen: new Uint8Array(n)};
  const column = time => Math.min(n - 1, Math.floor(time / whole * n));
  for (const lane of lanes) {
    for (let i = 0; i < lane.marks.n; ++i) {
      const sign = lane.marks.sign[i];
      if (sign === REFUSED) counted.refused[column(lane.marks.time[i])] += lane.marks.count[i];
      if (sign === STALE) counted.stale[column(lane.marks.time[i])] += lane.marks.count[i];
    }
    for (let i = 0; i < lane.faults.n; ++i) {
      counted.frozen.fill(1, column(lane.faults.from[i]), column(lane.faults.to[i]) + 1);
    }
  }
  return counted;
}

function drawOverview() {
  const pen = prepare(overview, 44);
  const wide = plotWidth();
  pen.fillStyle = colours.paper;
  pen.fillRect(0, 0, width, 44);
  const n = Math.max(Math.floor(wide / 3), 10);
  if (!columns || columns.n !== n) columns = countColumns(n);
  let most = 1;
  for (let i = 0; i < n; ++i) most = Math.max(most, columns.refused[i] + columns.stale[i]);
  pen.fillStyle = colours.soft;
  pen.fillText('late writes', 10, 22);
  for (let i = 0; i < n; ++i) {
    const x = LABEL + i * wide / n, bar = wide / n - 0.6;
    if (columns.frozen[i]) {
      pen.fillStyle = colours.frozen;
      pen.fillRect(x, 40, wide / n, 3);
    }
    const refused = 34 * columns.refused[i] / most, stale = 34 * columns.stale[i] / most;
    pen.fillStyle = colours.refused;
    if (refused > 0) pen.fillRect(x, 38 - Math.max(refused, 2), bar, Math.max(refused, 2));
    pen.fillStyle = colours.stale;
    if (stale > 0) pen.fillRect(x, 38 - refused - Math.max(stale, 3), bar, Math.max(stale, 3));
  }
  const left = LABEL + view.from / whole * wide, right = LABEL + view.to / whole * wide;
  pen.fillStyle = colours.window;
  pen.globalAlpha = 0.15;
  pen.fillRect(left, 0, Math.max(right - left, 3), 44);
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.window;
  pen.strokeRect(left + 0.5, 0.5, Math.max(right - left, 3) - 1, 43);
}

function drawSamples() {
  for (const canvas of document.querySelectorAll('.sample')) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = 30 * scale;
    canvas.height = 18 * scale;
    const pen = canvas.getContext('2d'), of = canvas.dataset.of;
    pen.setTransform(scale, 0, 0, scale, 0, -6 * scale);
    if (of === 'held' || of === 'believed') {
      pen.fillStyle = colours[of];
      pen.fillRect(1, 8, 28, 14);
      if (of === 'believed') {
        pen.strokeStyle = colours['believed-line'];
        pen.setLineDash([3, 2]);
        pen.strokeRect(1.5, 8.5, 27, 13);
      }
    } else if (of === 'pause') {
      pen.fillStyle = hatch(pen);
      pen.fillRect(1, 7, 28, 16);
    } else if (of === 'other') {
      pen.fillStyle = colours.other;
      pen.fillRect(1, 7, 28, 16);
    } else {
      drawSign(pen, SIGNS.indexOf(of), 15, of === 'accepted' ? -8 : 0);
    }
  }
}

let wanted = false;
function redraw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    drawTimeline();
    drawOverview();
  });
}
function redrawAll() {
  readColours();
  drawTimeline();
  drawOverview();
  drawSamples();
}

// ---- moving ------------------------------------------------------------------------------------
function show(from, to) {
  const span = Math.min(Math.max(to - from, 50), whole);
  const start = Math.min(Math.max((from + to - span) / 2, 0), whole - span);
  view = {from: start, to: start + span};
  redraw();
}
function zoom(factor, around) {
  const from = around - (around - view.from) * factor;
  show(from, from + (view.to - view.from) * factor);
}
const middle = () => (view.from + view.to) / 2;
const pan = share => {
  const by = Math.min(Math.max((view.to - view.from) * share, -view.from), whole - view.to);
  show(view.from + by, view.to + by);
};
function centre(time) {
  const span = Math.min(view.to - view.from, meta.cycle);
  show(time - span * 0.75, time + span * 0.25);
}
// The late write that was last gone to, else what lies in the middle.
let visited = null;
function step(forward) {
  if (late.length === 0) return;
  const here = visited !== null && visited >= view.from && visited <= view.to ? visited : middle();
  let at = lowerBound(late, late.length, here);
  if (forward) while (at < late.length && late[at] <= here) ++at;
  else --at;
  visited = late[Math.min(Math.max(at, 0), late.length - 1)];
  centre(visited);
}

byId('in').onclick = () => zoom(0.5, middle());
byId('out').onclick = () => zoom(2, middle());
byId('all').onclick = () => show(0, whole);
byId('next').onclick = () => step(true);
byId('previous').onclick = () => step(false);
byId('save').onclick = () => timeline.toBlob(blob => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = 'leasehold-drill.png';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

timeline.addEventListener('keydown', event => {
  const act = {
    'ArrowLeft': () => pan(-0.2), 'ArrowRight': () => pan(0.2), '+': () => zoom(0.5, middle()),
    '=': () => zoom(0.5, middle()), '-': () => zoom(2, middle()), '0': () => show(0, whole),
    'n': () => step(true), 'p': () => step(false),
  }[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
});

timeline.addEventListener('wheel', event => {
  // Else the page could not be scrolled past the picture.
  if (document.activeElement !== timeline && !event.ctrlKey) return;
  event.preventDefault();
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / plotWidth());
  else zoom(Math.pow(1.0015, event.deltaY), timeAt(event.offsetX));
}, {passive: false});
timeline.addEventListener('dblclick', event => zoom(0.25, timeAt(event.offsetX)));

const pointers = new Map();
timeline.addEventListener('pointerdown', event => {
  timeline.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, event.offsetX);
  timeline.classList.add('moving');
});
timeline.addEventListener('pointermove', event => {
  if (!pointers.has(event.pointerId)) return tell(event);
  byId('detail').hidden = true;
  const before = [...pointers.values()];
  const x = event.offsetX, last = pointers.get(event.pointerId);
  pointers.set(event.pointerId, x);
  if (pointers.size === 1) return pan((last - x) / plotWidth());
  const after = [...pointers.values()];
  const gap = values => Math.max(Math.abs(values[0] - values[1]), 10);
  zoom(gap(before) / gap(after), timeAt((after[0] + after[1]) / 2));
});
for (const kind of ['pointerup', 'pointercancel']) {
  timeline.addEventListener(kind, event => {
    pointers.delete(event.pointerId);
    if (pointers.size === 0) timeline.classList.remove('moving');
  });
}
timeline.addEventListener('pointerleave', () => { byId('detail').hidden = true; });

const jump = event => {
  if (event.buttons === 0) return;
  const time = (event.offsetX - LABEL) / plotWidth() * whole, span = view.to - view.from;
  show(time - span / 2, time + span / 2);
};
overview.addEventListener('pointerdown', event => {
  overview.setPointerCapture(event.pointerId);
  jump(event);
});
overview.addEventListener('pointermove', jump);

// ---- what is under the pointer -----------------------------------------------------------------
const times = (count, what) => count > 1 ? count + ' times ' + what : what;
const spanText = (from, to) => microsText(from, 1) + ' to ' + microsText(to, 1);

function under(x, y) {
  const row = rows.find(each => each.lane && y >= each.y && y < each.y + ROW);
  if (!row || x < LABEL) return [];
  const lane = row.lane, time = timeAt(x), reach = timeAt(x + 5) - time, lines = [];
  const marks = lane.marks, first = lowerBound(marks.time, marks.n, time - reach);
  const said = ['a write was accepted', 'a stale write was refused', 'A STALE WRITE WAS ACCEPTED', 'killed'];
  for (let i = first; i < marks.n && marks.time[i] <= time + reach && lines.length < 6; ++i) {
    lines.push(microsText(marks.time[i], 1) + ': ' + times(marks.count[i], said[marks.sign[i]]) +
               (marks.token[i] > 0n ? ', token ' + marks.token[i] : ''));
  }
  for (let i = 0; i < lane.faults.n && lane.faults.from[i] <= time; ++i) {
    if (lane.faults.to[i] < time) continue;
    const what = lane.faults.what[i] === PAUSE ? 'frozen' : meta.faults[lane.faults.what[i]];
    lines.push(times(lane.faults.count[i], what) + ' from ' + spanText(lane.faults.from[i], lane.faults.to[i]));
  }
  const held = lane.held, at = lowerBound(held.from, held.n, time + reach) - 1;
  if (at >= 0 && held.to[at] >= time - reach) {
    const token = tokens(held, at);
    lines.push((held.count[at] > 1 ? held.count[at] + ' leases' : 'lease') + (token ? ', token ' + token : '') +
               ', from ' + spanText(held.from[at], held.until[at]));
    if (held.to[at] > held.until[at]) lines.push('believed to hold it until ' + microsText(held.to[at], 1));
  }
  if (lines.length > 0) lines.unshift(ownerAt(lane, time) + (lane.lock ? ' at ' + lane.lock : ''));
  return lines;
}

function tell(event) {
  const lines = under(event.offsetX, event.offsetY), box = byId('detail');
  box.hidden = lines.length === 0;
  if (box.hidden) return;
  box.textContent = lines.join('\n');
  box.style.left = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8) + 'px';
  box.style.top = Math.min(event.clientY + 16, window.innerHeight - box.offsetHeight - 8) + 'px';
}

// ---- from outside ------------------------------------------------------------------------------
// A link to a moment: #at=FROM-TO in microseconds.
function follow() {
  const found = /^#at=(\d+)-(\d+)$/.exec(location.hash);
  if (found) show(Number(found[1]), Number(found[2]));
  return found !== null;
}
window.addEventListener('hashchange', () => {
  if (follow()) timeline.scrollIntoView({block: 'nearest'});
});
window.addEventListener('resize', redraw);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawAll);
for (const [kind, printing] of [['beforeprint', true], ['afterprint', false]]) {
  window.addEventListener(kind, () => {
    document.documentElement.classList.toggle('print', printing);
    for (const each of document.querySelectorAll('details')) each.open = printing;
    redrawAll();
  });
}

if (!follow()) show(meta.show[0], meta.show[1]);
redrawAll();
document.documentElement.dataset.ready = 'yes';
})();
