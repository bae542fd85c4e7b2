'use strict';
// Draws what is to be zoomed, turned or pointed at: the timeline of all ranks, utilisation, steals,
// steps, the cloth.
// Each run of the page has its numbers in #meta-K and its arrays, deflated, in #blob-K.
window.weft = { runs: [], ready: false };
(() => {
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const element = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};
const rgb = color => [1, 3, 5].map(k => parseInt(color.slice(k, k + 2), 16));
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const count = n => Math.round(n).toLocaleString('en');
const percent = x => (100 * x).toFixed(x < 0.0995 ? 1 : 0) + ' %';
const time = ns => {
  const [unit, name] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']].find(([u]) => Math.abs(ns) >= u) || [1, 'ns'];
  const x = ns / unit;
  return x.toFixed(unit === 1 || Math.abs(x) >= 99.95 ? 0 : Math.abs(x) >= 9.995 ? 1 : 2) + ' ' + name;
};

// Tooltip, beside the pointer and within the window.
const tip = document.getElementById('tip');
function showTip(text, x, y) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = clamp(x + 14, 4, innerWidth - box.width - 4) + 'px';
  tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + 'px';
}

async function inflate(text) {
  const plain = atob(text);
  const bytes = new Uint8Array(plain.length);
  for (let k = 0; k < plain.length; k++) bytes[k] = plain.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}

async function load(number) {
  const meta = JSON.parse(document.getElementById('meta-' + number).textContent);
  const blob = document.getElementById('blob-' + number);
  const buffer = await inflate(blob.textContent);
  blob.remove();
  const kinds = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };
  const arrays = {};
  for (const [name, [kind, at, length]] of Object.entries(meta.arrays)) arrays[name] = new kinds[kind](buffer, at, length);
  // Begins are stored as differences within a track.
  for (const group of ['task', 'phase', 'wait', 'scope', 'output', 'steal']) {
    const first = arrays[group + '_first'], begin = arrays[group + '_begin'];
    if (!first) continue;
    for (let t = 0; t + 1 < first.length; t++)
      for (let k = first[t] + 1; k < first[t + 1]; k++) begin[k] += begin[k - 1];
  }
  return { number, meta, a: arrays };
}

// A canvas as wide as its place, sharp on any screen, drawn again when its size, its colours or its
// data change.
function picture(place, height, draw, label) {
  const canvas = element('canvas', { tabIndex: 0 });
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', label);
  place.append(canvas);
  const own = { canvas, width: 0, height, scale: 1, frames: [], due: false };
  own.context = canvas.getContext('2d');
  own.resize = () => {
    const width = Math.max(120, canvas.clientWidth), scale = Math.min(devicePixelRatio || 1, 2);
    Object.assign(own, { width, scale });
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(own.height * scale);
    canvas.style.height = own.height + 'px';
    own.paint();
  };
  own.paint = () => {
    const began = performance.now();
    own.due = false;
    own.context.setTransform(own.scale, 0, 0, own.scale, 0, 0);
    own.context.clearRect(0, 0, own.width, own.height);
    draw(own);
    own.frames.push(performance.now() - began);
    if (own.frames.length > 500) own.frames.shift();
  };
  own.ask = () => {
    if (!own.due) requestAnimationFrame(own.paint);
    own.due = true;
  };
  new ResizeObserver(() => own.width !== Math.max(120, canvas.clientWidth) && own.resize()).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', own.resize);
  return own;
}

// Pointing at a picture: `what` gives the text for a place in it.
function pointable(own, what) {
  own.canvas.addEventListener('pointermove', e => {
    const box = own.canvas.getBoundingClientRect();
    showTip(what(e.clientX - box.left, e.clientY - box.top), e.clientX, e.clientY);
  });
  own.canvas.addEventListener('pointerleave', () => showTip(''));
}

function legend(entries) {
  const list = element('ul', { className: 'legend' });
  for (const [color, name] of entries) {
    const swatch = element('span', { className: 'swatch' });
    swatch.style.background = color;
    list.append(element('li', {}, swatch, name));
  }
  return list;
}

// ---- the timeline, and how many are at work ----

const LEFT = 56, AXIS = 20;
const OWN = 0, FOREIGN = 1, COMPUTE = 2, REDUCTION = 3, MESSAGES = 4, IDLE = 5, OUTPUTS = 6, PLACED = 7;
const CLASSES = ['own tasks', 'stolen tasks', 'computing', 'in a reduction', 'waiting for messages',
  'idle in collide', 'outputs', 'tasks placed here, of other ranks’ patches'];
const CLASS_COLORS = ['--u0', '--foreign', '--u1', '--u7', '--u8', '--u4', '--u9', '--u6'];
const classColors = () => CLASS_COLORS.map(css);

function timeline(run, places) {
  const { meta, a } = run, traced = meta.traced;
  const total = traced.ticks, tick = traced.tick_ns, owners = meta.owners;
  const lanes = [];
  traced.lanes.forEach((workers, rank) => {
    for (let worker = 0; worker < workers; worker++) lanes.push({ rank, worker, track: lanes.length });
  });
  // A task is foreign if its rank owns none of its patches: stolen, or placed there.
  const foreign = new Uint8Array(a.task_begin.length);
  if (owners.length)
    lanes.forEach(({ rank, track }) => {
      for (let k = a.task_first[track]; k < a.task_first[track + 1]; k++) {
        const p = owners[a.task_p[k]], q = owners[a.task_q[k]];
        foreign[k] = (p !== undefined || q !== undefined) && p !== rank && q !== rank ? 1 : 0;
      }
    });
  const rowHeight = clamp(Math.floor(560 / lanes.length), lanes.length > 200 ? 3 : 9, 34);
  const view = { t0: 0, t1: total };
  let chosen = -1, chosenTask = -1;

  // The first span of a track that ends after t; spans of a track do not overlap but for nested
  // ones.
  function from(group, track, t) {
    const first = a[group + '_first'], begin = a[group + '_begin'], length = a[group + '_length'];
    let low = first[track], high = first[track + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begin[middle] + length[middle] <= t) low = middle + 1; else high = middle;
    }
    return low;
  }
  // The span of a track at t, or -1.
  function at(group, track, t) {
    const k = from(group, track, t);
    return k < a[group + '_first'][track + 1] && a[group + '_begin'][k] <= t ? k : -1;
  }
  // Adds to each column the share of it that the spans in view cover.
  function cover(into, group, track, scale, columns, select) {
    const begin = a[group + '_begin'], length = a[group + '_length'], end = a[group + '_first'][track + 1];
    for (let k = from(group, track, view.t0); k < end && begin[k] < view.t1; k++) {
      const target = select ? select(k) : into;
      let x0 = (begin[k] - view.t0) * scale, x1 = x0 + length[k] * scale;
      if (x0 < 0) x0 = 0;
      if (x1 > columns) x1 = columns;
      const first = x0 | 0, last = x1 | 0;
      if (first >= columns) continue;
      if (first === last) { target[first] += x1 - x0; continue; }
      target[first] += first + 1 - x0;
      for (let x = first + 1; x < last; x++) target[x] += 1;
      if (last < columns) target[last] += x1 - last;
    }
  }

  const status = element('output');
  status.setAttribute('aria-live', 'polite');
  const button = (name, label, act) => {
    const made = element('button', { type: 'button', textContent: name, onclick: act });
    made.setAttribute('aria-label', label);
    return made;
  };
  const stepInput = element('input', { type: 'number', style: 'width:6em' });
  const stepLabel = element('label', {}, 'step ', stepInput);
  const tools = element('div', { className: 'tools' },
    button('+', 'zoom in', () => zoom(0.5)), button('−', 'zoom out', () => zoom(2)),
    button('all', 'show all', () => setView(0, total)), stepLabel, status);
  places.timeline.append(tools, legend(CLASS_COLORS.map((color, k) => ['var(' + color + ')', CLASSES[k]])));
  const numbers = a.step_number;
  if (numbers && numbers.length) {
    stepInput.min = numbers[0];
    stepInput.max = numbers[numbers.length - 1];
    stepInput.onchange = () => showStep(+stepInput.value);
  }

  let covers = null;
  const sums = [];
  const drawn = picture(places.timeline, lanes.length * rowHeight + AXIS + 14, own => {
    const { context, width } = own;
    const columns = Math.max(1, Math.round((width - LEFT) * own.scale));
    if (!covers || covers[0].length !== columns) covers = Array.from({ length: 8 }, () => new Float32Array(columns));
    const [phase, scope, reduction, messages, tasks, others, outputs, placed] = covers;
    const scale = columns / (view.t1 - view.t0);
    const colors = classColors().map(rgb), back = rgb(css('--empty'));
    const rows = Math.max(1, Math.round(rowHeight * own.scale)), gap = rowHeight > 5 ? Math.round(own.scale) : 0;
    const image = context.createImageData(columns, rows);
    sums.length = 0;
    for (let k = 0; k < CLASSES.length; k++) sums.push(new Float32Array(columns));
    const parts = new Float32Array(CLASSES.length);
    let lastRank = -1;
    for (const { rank, track } of lanes) {
      if (rank !== lastRank) {
        [phase, scope, reduction, messages, outputs].forEach(c => c.fill(0));
        cover(phase, 'phase', rank, scale, columns);
        cover(scope, 'scope', rank, scale, columns);
        cover(outputs, 'output', rank, scale, columns);
        cover(null, 'wait', rank, scale, columns, k => traced.collective[a.wait_kind[k]] ? reduction : messages);
        lastRank = rank;
      }
      tasks.fill(0);
      others.fill(0);
      placed.fill(0);
      cover(null, 'task', track, scale, columns, k => a.task_stolen[k] ? others : foreign[k] ? placed : tasks);
      const data = image.data;
      for (let x = 0; x < columns; x++) {
        parts[OWN] = tasks[x];
        parts[FOREIGN] = others[x];
        parts[PLACED] = placed[x];
        parts[REDUCTION] = reduction[x];
        parts[MESSAGES] = messages[x];
        parts[OUTPUTS] = outputs[x];
        parts[IDLE] = Math.max(0, scope[x] - tasks[x] - others[x] - placed[x]);
        parts[COMPUTE] = Math.max(0, phase[x] - scope[x] - reduction[x] - messages[x]);
        let r = 0, g = 0, b = 0, rest = 1;
        for (let k = 0; k < parts.length; k++) {
          const part = parts[k];
          if (part === 0) continue;
          sums[k][x] += part;
          r += part * colors[k][0];
          g += part * colors[k][1];
          b += part * colors[k][2];
          rest -= part;
        }
        if (rest > 0) { r += rest * back[0]; g += rest * back[1]; b += rest * back[2]; }
        for (let y = 0; y < rows; y++) {
          const p = 4 * (y * columns + x);
          data[p] = r;
          data[p + 1] = g;
          data[p + 2] = b;
          data[p + 3] = y < rows - gap ? 255 : 0;
        }
      }
      context.putImageData(image, Math.round(LEFT * own.scale), Math.round(track * rowHeight * own.scale));
    }
    labels(own, scale / own.scale);
    axis(own, lanes.length * rowHeight, true);
    utilisation.ask();
  }, 'Timeline of all ranks. Arrow keys move, plus and minus zoom, up and down choose a rank, n and p go from task to task.');
  drawn.canvas.setAttribute('role', 'application');

  // Names of tasks and arrows of steals where there is room for them.
  function labels(own, scale) {
    const { context, width } = own;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    context.fillStyle = css('--dim');
    const every = Math.max(1, Math.ceil(13 / rowHeight));
    lanes.forEach((lane, k) => {
      if (k % every) return;
      const name = meta.workers > 1 ? lane.rank + '.' + lane.worker : String(lane.rank);
      context.fillText(name, LEFT - 6, (k + 0.5) * rowHeight);
    });
    if (chosen >= 0) {
      context.strokeStyle = css('--fg');
      context.lineWidth = 1.5;
      context.strokeRect(LEFT, chosen * rowHeight - 0.5, width - LEFT - 1, rowHeight);
    }
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, width - LEFT, lanes.length * rowHeight);
    context.clip();
    if (rowHeight >= 12) {
      context.textAlign = 'left';
      context.fillStyle = '#fff';
      for (const { track } of lanes) {
        const end = a.task_first[track + 1];
        let seen = 0;
        for (let k = from('task', track, view.t0); k < end && a.task_begin[k] < view.t1 && seen < 400; k++, seen++) {
          const x = LEFT + (a.task_begin[k] - view.t0) * scale, w = a.task_length[k] * scale;
          const name = about(k);
          if (w > 8 * name.length) {
            context.fillStyle = a.task_stolen[k] || foreign[k] ? '#000' : '#fff';
            context.fillText(name, Math.max(x, LEFT) + 4, (track + 0.5) * rowHeight);
          }
        }
      }
    }
    if (chosenTask >= 0 && chosen >= 0) {
      context.lineWidth = 2.5;
      context.strokeRect(LEFT + (a.task_begin[chosenTask] - view.t0) * scale, chosen * rowHeight,
        Math.max(3, a.task_length[chosenTask] * scale), rowHeight - 1);
    }
    // Steals: from the victim to the thief, when the answer came.
    const firstLane = [];
    lanes.forEach((lane, k) => { if (lane.worker === 0) firstLane[lane.rank] = k; });
    const arrows = [];
    for (let thief = 0; thief < meta.ranks && arrows.length <= 300; thief++) {
      const end = a.steal_first[thief + 1];
      for (let k = from('steal', thief, view.t0); k < end && a.steal_begin[k] < view.t1 && arrows.length <= 300; k++)
        arrows.push([k, thief]);
    }
    if (arrows.length <= 300) {
      context.strokeStyle = context.fillStyle = css('--fg');
      context.lineWidth = 1.2;
      for (const [k, thief] of arrows) {
        const x = LEFT + (a.steal_begin[k] + a.steal_length[k] - view.t0) * scale;
        const y0 = (firstLane[a.steal_victim[k]] + 0.5) * rowHeight, y1 = (firstLane[thief] + 0.5) * rowHeight;
        const down = Math.sign(y1 - y0);
        context.beginPath();
        context.moveTo(x, y0);
        context.lineTo(x, y1);
        context.stroke();
        context.beginPath();
        context.moveTo(x, y1);
        context.lineTo(x - 3, y1 - 6 * down);
        context.lineTo(x + 3, y1 - 6 * down);
        context.fill();
      }
    }
    context.restore();
  }

  function axis(own, y, steps) {
    const { context, width } = own;
    const span = (view.t1 - view.t0) * tick, room = (width - LEFT) / 110;
    let unit = 10 ** Math.floor(Math.log10(span / room));
    unit *= [1, 2, 5, 10].find(k => span / (unit * k) <= room) || 10;
    context.fillStyle = context.strokeStyle = css('--dim');
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'top';
    context.textAlign = 'center';
    context.lineWidth = 1;
    // As many digits as tell one mark from the next.
    const [scale, name] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']].find(([u]) => span >= u || u === 1);
    const digits = clamp(Math.ceil(-Math.log10(unit / scale) - 1e-9), 0, 6);
    const label = ns => (ns / scale).toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }) + ' ' + name;
    const first = Math.ceil(view.t0 * tick / unit) * unit;
    for (let ns = first; ns <= view.t1 * tick; ns += unit) {
      const x = LEFT + (ns / tick - view.t0) / (view.t1 - view.t0) * (width - LEFT);
      context.fillRect(x, y, 1, 4);
      context.fillText(label(ns), clamp(x, LEFT + 16, width - 34), y + 6);
    }
    if (!steps) return;
    // Where steps begin, by rank 0.
    const end = a.phase_first[1], begins = [];
    let last = -1;
    for (let k = from('phase', 0, view.t0); k < end && a.phase_begin[k] < view.t1 && begins.length <= room * 2; k++) {
      if (a.phase_step[k] !== last) begins.push([a.phase_step[k], a.phase_begin[k]]);
      last = a.phase_step[k];
    }
    if (begins.length > room * 2) return;
    const place = t => LEFT + Math.max(0, (t - view.t0) / (view.t1 - view.t0)) * (width - LEFT);
    for (const [k, [step, t]] of begins.entries()) {
      const x = place(t);
      // The next name would stand on this one.
      if (k + 1 < begins.length && place(begins[k + 1][1]) - x < 60) continue;
      context.textAlign = x > width - 60 ? 'right' : 'left';
      context.fillRect(x, 0, 1, y + 32);
      context.fillText('step ' + step, x + (x > width - 60 ? -4 : 4), y + 20);
    }
  }

  const utilisation = picture(places.utilisation, 130 + AXIS, own => {
    const { context, width } = own, height = 130;
    context.fillStyle = css('--empty');
    context.fillRect(LEFT, 0, width - LEFT, height);
    if (sums.length && sums[0].length) {
      const columns = sums[0].length, step = (width - LEFT) / columns, base = new Float32Array(columns);
      const colors = classColors();
      [OWN, PLACED, FOREIGN, COMPUTE, OUTPUTS, REDUCTION, MESSAGES, IDLE].forEach(k => {
        context.fillStyle = colors[k];
        context.beginPath();
        for (let x = 0; x < columns; x++) context.lineTo(LEFT + x * step, height * (1 - base[x] / lanes.length));
        for (let x = columns - 1; x >= 0; x--) {
          base[x] += sums[k][x];
          context.lineTo(LEFT + x * step, height * (1 - Math.min(base[x] / lanes.length, 1)));
        }
        context.fill();
      });
    }
    context.fillStyle = css('--dim');
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    [[0, 'bottom'], [0.5, 'middle'], [1, 'top']].forEach(([share, baseline]) => {
      context.textBaseline = baseline;
      context.fillText(100 * share + ' %', LEFT - 6, height * (1 - share));
    });
    axis(own, height);
  }, 'Share of workers at work over time');
  pointable(utilisation, x => {
    if (x < LEFT || !sums.length) return '';
    const column = Math.floor((x - LEFT) / (utilisation.width - LEFT) * sums[0].length);
    const t = view.t0 + (x - LEFT) / (utilisation.width - LEFT) * (view.t1 - view.t0);
    const shares = sums.map((sum, k) => [CLASSES[k], (sum[column] || 0) / lanes.length]);
    return 'at ' + time(t * tick) + '\n' + shares.filter(s => s[1] >= 0.0005).map(s => percent(s[1]) + ' ' + s[0]).join('\n');
  });

  function setView(t0, t1) {
    const least = Math.max(20, 100 / tick), span = clamp(t1 - t0, Math.min(least, total), total);
    view.t0 = clamp(t0, 0, total - span);
    view.t1 = view.t0 + span;
    status.value = time(span * tick) + ' of ' + time(total * tick) + ', from ' + time(view.t0 * tick) + ' on';
    drawn.ask();
  }
  function zoom(factor, middle = (view.t0 + view.t1) / 2) {
    const share = (middle - view.t0) / (view.t1 - view.t0), span = (view.t1 - view.t0) * factor;
    setView(middle - share * span, middle + (1 - share) * span);
  }
  function showStep(step) {
    let t0 = Infinity, t1 = 0;
    for (let k = 0; k < a.phase_step.length; k++)
      if (a.phase_step[k] === step) {
        t0 = Math.min(t0, a.phase_begin[k]);
        t1 = Math.max(t1, a.phase_begin[k] + a.phase_length[k]);
      }
    if (t0 < t1) setView(t0 - 0.02 * (t1 - t0), t1 + 0.02 * (t1 - t0));
    return t0 < t1;
  }
  const timeOf = x => view.t0 + (x - LEFT) / (drawn.width - LEFT) * (view.t1 - view.t0);

  const side = n => n >= 1000000 ? 'body ' + (n - 1000000) : 'patch ' + n;
  function about(k) {
    const p = a.task_p[k], q = a.task_q[k];
    if (p === 4294967295 && q === 4294967295) return 'task';
    const short = n => n >= 1000000 ? 'b' + (n - 1000000) : String(n);
    return p === q ? short(p) : short(p) + '–' + short(q);
  }
  function tell(k, rank) {
    const p = a.task_p[k], q = a.task_q[k];
    const named = !(p === 4294967295 && q === 4294967295);
    const whose = n => n < 1000000 && owners[n] !== undefined ? ' (of rank ' + owners[n] + ')' : '';
    const lines = [named ? 'task: ' + side(p) + whose(p) + (p === q ? ' against itself' : ' against ' + side(q) + whose(q)) : 'task'];
    if (a.task_stolen[k]) lines.push('stolen: it came to rank ' + rank + ' from another, as far as the trace tells');
    else if (foreign[k]) lines.push('placed here: rank ' + rank + ' owns none of its patches');
    lines.push(count(a.task_tests[k]) + ' tests in ' + time(a.task_length[k] * tick) +
      (a.task_depth[k] ? ', split off ' + a.task_depth[k] + ' deep' : ''));
    return lines.join('\n');
  }
  function what(x, y) {
    const lane = lanes[Math.floor(y / rowHeight)];
    if (!lane || x < LEFT) return '';
    const { rank, worker, track } = lane;
    // Half a pixel to either side is as near as a hand can point.
    const t = timeOf(x), near = 1.5 * (view.t1 - view.t0) / (drawn.width - LEFT);
    const lines = ['rank ' + rank + (meta.workers > 1 ? ', worker ' + worker : '') + ' at ' + time(t * tick)];
    const phase = at('phase', rank, t);
    if (phase >= 0) lines[0] += ', step ' + a.phase_step[phase] + ', ' + traced.phases[a.phase_kind[phase]];
    let task = at('task', track, t);
    if (task < 0) {
      const next = from('task', track, t);
      if (next < a.task_first[track + 1] && a.task_begin[next] - t < near) task = next;
    }
    const wait = at('wait', rank, t);
    if (task >= 0) lines.push(tell(task, rank));
    else if (wait >= 0) lines.push('waits ' + time(a.wait_length[wait] * tick) + ' for rank ' + a.wait_from[wait] +
      ': ' + traced.waits[a.wait_kind[wait]]);
    else if (at('scope', rank, t) >= 0) {
      const others = lanes.filter(other => other.track !== track && at('task', other.track, t) >= 0).map(other => other.rank);
      const some = [...new Set(others)], named = some.slice(0, 6).join(', ') + (some.length > 6 ? ', …' : '');
      lines.push('idle: no task, while ' + (some.length ? (some.length > 1 ? 'ranks ' : 'rank ') + named + ' ran some' : 'nobody ran any'));
    }
    else if (phase >= 0) lines.push('computing');
    else lines.push(at('output', rank, t) >= 0 ? 'outputs between steps' : 'between steps');
    return lines.join('\n');
  }
  pointable(drawn, what);

  drawn.canvas.addEventListener('wheel', e => {
    const out = e.deltaY > 0;
    // All is in view: the page scrolls on.
    if (out && view.t1 - view.t0 >= total && !e.shiftKey) return;
    e.preventDefault();
    const sideways = e.shiftKey ? e.deltaY || e.deltaX : Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : 0;
    const span = view.t1 - view.t0;
    if (sideways) setView(view.t0 + sideways / 600 * span, view.t1 + sideways / 600 * span);
    else zoom(Math.exp(clamp(e.deltaY, -200, 200) / 300), timeOf(Math.max(LEFT, e.offsetX)));
    showTip(what(e.offsetX, e.offsetY), e.clientX, e.clientY);
  }, { passive: false });
  let drag = null;
  drawn.canvas.addEventListener('pointerdown', e => {
    if (e.button !== 0) return;
    drag = { x: e.clientX, t0: view.t0, t1: view.t1 };
    drawn.canvas.setPointerCapture(e.pointerId);
  });
  drawn.canvas.addEventListener('pointermove', e => {
    if (!drag) return;
    const by = (drag.x - e.clientX) / (drawn.width - LEFT) * (drag.t1 - drag.t0);
    setView(drag.t0 + by, drag.t1 + by);
  });
  for (const end of ['pointerup', 'pointercancel']) drawn.canvas.addEventListener(end, () => { drag = null; });
  drawn.canvas.addEventListener('dblclick', () => setView(0, total));

  function choose(lane) {
    chosen = clamp(lane, 0, lanes.length - 1);
    chosenTask = -1;
    status.value = 'rank ' + lanes[chosen].rank + (meta.workers > 1 ? ', worker ' + lanes[chosen].worker : '');
    drawn.ask();
  }
  function go(by) {
    if (chosen < 0) choose(0);
    const track = lanes[chosen].track, first = a.task_first[track], end = a.task_first[track + 1];
    if (first === end) { status.value = 'no task here'; return; }
    const next = chosenTask < 0 ? from('task', track, (view.t0 + view.t1) / 2) : chosenTask + by;
    chosenTask = clamp(next, first, end - 1);
    const t = a.task_begin[chosenTask], span = view.t1 - view.t0;
    if (t < view.t0 || t > view.t1) setView(t - span / 2, t + span / 2);
    status.value = tell(chosenTask, lanes[chosen].rank).replaceAll('\n', '; ');
    drawn.ask();
  }
  drawn.canvas.addEventListener('keydown', e => {
    const span = view.t1 - view.t0;
    const acts = {
      ArrowLeft: () => setView(view.t0 - span / 5, view.t1 - span / 5),
      ArrowRight: () => setView(view.t0 + span / 5, view.t1 + span / 5),
      ArrowUp: () => choose(chosen < 0 ? 0 : chosen - 1),
      ArrowDown: () => choose(chosen + 1),
      '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2),
      Home: () => setView(0, total), n: () => go(1), p: () => go(-1),
    };
    if (!acts[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    showTip('');
    acts[e.key]();
  });
  setView(0, total);
  drawn.resize();
  utilisation.resize();
  Object.assign(run, { view: () => ({ ...view }), setView, showStep, what, frames: drawn.frames, rowHeight, left: LEFT,
    canvas: drawn.canvas, paint: drawn.paint, spans: a.task_begin.length + a.phase_begin.length + a.wait_begin.length });
}

// ---- steals between ranks ----

function steals(run, place) {
  const n = run.meta.ranks, cells = new Map();
  let most = 0;
  for (const [thief, victim, tasks, served, refused, latency] of run.meta.traced.steals) {
    cells.set(thief * n + victim, { tasks, served, refused, latency });
    most = Math.max(most, tasks);
  }
  const size = clamp(Math.floor(620 / n), n > 200 ? 2 : 6, 36), left = 70, top = 34;
  const own = picture(place, n * size + top + 4, ({ context }) => {
    const dark = rgb(css('--u0')), empty = rgb(css('--empty'));
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const every = Math.max(1, Math.ceil(20 / size));
    context.fillStyle = css('--dim');
    context.fillText('victim', left + n * size / 2, 8);
    for (let k = 0; k < n; k += every) {
      context.fillText(k, left + (k + 0.5) * size, 24);
      context.fillText(k, left - 14, top + (k + 0.5) * size);
    }
    context.fillText('thief', 26, top + n * size / 2);
    context.fillStyle = css('--empty');
    context.fillRect(left, top, n * size, n * size);
    const gap = size > 5 ? 1 : 0, spot = (thief, victim) =>
      context.fillRect(left + victim * size, top + thief * size, size - gap, size - gap);
    context.fillStyle = css('--line');
    for (let k = 0; k < n; k++) spot(k, k);
    for (const [at, { tasks }] of cells) {
      if (!tasks) continue;
      const thief = Math.floor(at / n), victim = at % n;
      const share = 0.15 + 0.85 * Math.log1p(tasks) / Math.log1p(most);
      context.fillStyle = 'rgb(' + empty.map((c, k) => Math.round(c + share * (dark[k] - c))) + ')';
      spot(thief, victim);
      if (size >= 26) {
        context.fillStyle = share > 0.5 ? '#fff' : css('--fg');
        context.fillText(tasks > 9999 ? Math.round(tasks / 1000) + 'k' : tasks, left + (victim + 0.5) * size, top + (thief + 0.5) * size);
      }
    }
  }, 'Matrix of steals between ranks; the paragraph on balance names the pair that moved most');
  own.canvas.style.maxWidth = left + n * size + 4 + 'px';
  own.resize();
  pointable(own, (x, y) => {
    const victim = Math.floor((x - left) / size), thief = Math.floor((y - top) / size);
    if (victim < 0 || thief < 0 || victim >= n || thief >= n || victim === thief) return '';
    const cell = cells.get(thief * n + victim);
    const head = 'rank ' + thief + ' from rank ' + victim + '\n';
    if (!cell) return head + 'never asked';
    return head + count(cell.tasks) + ' tasks\n' + count(cell.served) + ' requests served, ' + count(cell.refused) + ' refused' +
      (cell.served ? '\n' + time(cell.latency / cell.served) + ' until tasks came' : '');
  });
}

// ---- time of each phase, step by step ----

function steps(run, place) {
  const { meta, a } = run, numbers = a.h_step, height = 190;
  const names = meta.history_phases, all = { collide: '--u3', assemble: '--u8', solve: '--u0', respond: '--u1', share: '--u7' },
    variables = names.map(name => all[name]), colors = () => variables.map(css);
  place.append(legend(names.map((name, k) => ['var(' + variables[k] + ')', name])));
  const series = names.map(name => a['h_' + name]);
  const own = picture(place, height + AXIS, ({ context, width }) => {
    // Where steps are narrower than pixels a column stands for several, by their mean.
    const room = width - LEFT - 8, columns = Math.min(numbers.length, Math.floor(room)), each = numbers.length / columns;
    const totals = [], bars = [];
    for (let c = 0; c < columns; c++) {
      const first = Math.floor(c * each), end = Math.max(first + 1, Math.floor((c + 1) * each));
      const means = series.map(s => { let sum = 0; for (let k = first; k < end; k++) sum += s[k]; return sum / (end - first); });
      bars.push(means);
      totals.push(means.reduce((x, y) => x + y, 0));
    }
    // A few steps that took very long shall not flatten all others.
    const sorted = [...totals].sort((x, y) => x - y);
    const top = Math.max(1e-9, Math.min(sorted[sorted.length - 1], 2 * sorted[Math.floor(0.97 * (sorted.length - 1))]));
    const step = room / columns;
    bars.forEach((means, c) => {
      let y = height;
      means.forEach((mean, k) => {
        const h = mean / top * (height - 6);
        context.fillStyle = colors()[k];
        context.fillRect(LEFT + c * step, Math.max(0, y - h), Math.max(step - (step > 4 ? 1 : 0), 0.6), Math.min(h, y));
        y -= h;
      });
    });
    // A bar that is taller than the picture is marked, lest it be taken for as tall.
    const clipped = totals.filter(total => total / top * (height - 6) > height + 0.5).length;
    context.fillStyle = css('--fg');
    if (clipped > 0) {
      totals.forEach((total, c) => {
        if (total / top * (height - 6) <= height + 0.5) return;
        const x = LEFT + (c + 0.5) * step;
        context.beginPath();
        context.moveTo(x - 4, 7);
        context.lineTo(x + 4, 7);
        context.lineTo(x, 0);
        context.fill();
      });
      context.font = '11px system-ui, sans-serif';
      context.textAlign = 'right';
      context.textBaseline = 'top';
      context.fillText('▲ taller than the picture: point at it', width - 12, 10);
    }
    context.fillStyle = css('--dim');
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const share of [0, 0.5, 1]) context.fillText(time(share * top * 1e9), LEFT - 4, height - share * (height - 12) - 1);
    context.textAlign = 'center';
    context.textBaseline = 'top';
    const every = Math.max(1, Math.ceil(numbers.length / (room / 60)));
    for (let k = 0; k < numbers.length; k += every) context.fillText(numbers[k], LEFT + (k + 0.5) * room / numbers.length, height + 5);
  }, 'Time of each phase in every step');
  own.resize();
  const index = x => Math.floor((x - LEFT) / (own.width - LEFT - 8) * numbers.length);
  pointable(own, x => {
    const k = index(x);
    if (k < 0 || k >= numbers.length) return '';
    const lines = names.map((name, s) => time(series[s][k] * 1e9) + ' ' + name);
    const at = a.step_number ? a.step_number.indexOf(numbers[k]) : -1;
    if (at >= 0) {
      const phases = meta.traced.phases;
      lines.push('', 'in the trace, mean of ranks / slowest');
      phases.forEach((name, p) => {
        const [mean, most] = [a.step_mean, a.step_most].map(s => time(s[at * phases.length + p] * 1e9));
        lines.push(mean + ' / ' + most + ' ' + name);
      });
    }
    return 'step ' + numbers[k] + '\n' + lines.join('\n');
  });
  own.canvas.addEventListener('click', e => {
    const k = index(e.offsetX);
    if (run.showStep && run.showStep(numbers[k])) run.canvas.scrollIntoView({ block: 'center' });
  });
}

// ---- the cloth, in the colours of owners, thieves and tests ----

// Colours of ranks: eight that people with any colour vision tell apart; beyond them each has a hue
// and a lightness of its own, and ranks that follow each other are far apart.
const RANKS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#8c6bb1'];
function rankColor(rank) {
  if (rank < RANKS.length) return rgb(RANKS[rank]);
  // The golden angle comes back to no hue.
  const hue = rank * 137.508 % 360, light = [0.36, 0.56, 0.76][rank % 3], strong = [0.85, 0.55][(rank >> 2) & 1];
  const reach = strong * Math.min(light, 1 - light);
  return [0, 8, 4].map(n => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (light - reach * clamp(Math.min(k - 3, 9 - k), -1, 1)));
  });
}
// From dark blue to yellow, as cividis: light stands for much, also without colours.
const SCALE = ['#00224e', '#35456c', '#666970', '#948e77', '#c8b866', '#fee838'].map(rgb);
function scaleColor(share) {
  const at = clamp(share, 0, 1) * (SCALE.length - 1), k = Math.min(Math.floor(at), SCALE.length - 2), f = at - k;
  return SCALE[k].map((c, i) => c + f * (SCALE[k + 1][i] - c));
}

function cloth(run, place) {
  const { meta, a } = run, patches = meta.traced.patches, owners = meta.owners;
  const triangles = a.cloth_triangles, of = a.cloth_patches, extent = meta.cloth.extent;
  const count3 = a.cloth_positions.length, points = new Float32Array(count3);
  for (let k = 0; k < count3; k++) points[k] = a.cloth_positions[k] / 65535 - extent[k % 3] / 2;
  const perStep = meta.traced.steps || 1;
  const per = patches.map(([tests, , , triangles]) => triangles ? tests / triangles / perStep : 0);
  const most = Math.max(...per, 1e-9);
  const share = p => Math.log1p(per[p] || 0) / Math.log1p(most);
  const none = () => rgb(css('--line'));
  const modes = [
    ['Owner: which rank has the patch', p => owners[p] === undefined ? none() : rankColor(owners[p])],
    ['Maker: which rank made most of its tests, placed there or stolen', p => patches[p] && patches[p][5] >= 0 ? rankColor(patches[p][5]) : none()],
    ['Thief: which other rank stole most of its tests', p => patches[p] && patches[p][2] >= 0 && patches[p][4] > 0 ? rankColor(patches[p][2]) : none()],
    ['Tests for each triangle in a step', p => scaleColor(share(p))],
  ];
  const total = patches.reduce((sum, patch) => sum + patch[0], 0) || 1;
  function tell(p) {
    if (p < 0 || p === undefined) return '';
    const [tests, moved, thief, , stolen, maker] = patches[p] || [0, 0, -1, 0, 0, -1];
    const lines = ['patch ' + p + (owners[p] === undefined ? '' : ' of rank ' + owners[p]),
      percent(tests / total) + ' of all tests, ' + (per[p] || 0).toFixed(1) + ' for a triangle in a step'];
    if (moved > stolen) lines.push(percent((moved - stolen) / tests) + ' of them placed elsewhere' + (maker >= 0 ? ', most made by rank ' + maker : ''));
    lines.push(thief >= 0 && stolen ? percent(stolen / tests) + ' of them stolen, most by rank ' + thief : 'none of them stolen');
    return lines.join('\n');
  }
  const turn = { yaw: -0.6, pitch: 0.5 };
  const box = element('div', { className: 'cloths' });
  place.append(element('p', { className: 'about', textContent: 'The cloth after step ' + meta.cloth.step +
    '. Drag to turn, point at a patch to see its numbers.' + (meta.cloth.left_out ? ' ' + count(meta.cloth.left_out) +
    ' triangles are left out.' : '') }), box);
  const shown = modes.map(([name, color], m) => {
    const figure = element('figure');
    box.append(figure);
    // Colours that stand for ranks are flat, as in the legend.
    const flat = m < 3, own = picture(figure, 270, own => paint(own, color, flat), name);
    figure.append(element('figcaption', { textContent: name }));
    if (flat) {
      const ranks = Array.from({ length: Math.min(meta.ranks, 256) }, (_, r) => ['rgb(' + rankColor(r) + ')', 'rank ' + r]);
      figure.append(legend(m ? [['var(--line)', 'nobody'], ...ranks] : ranks));
    } else {
      figure.append(legend([0, 0.25, 0.5, 0.75, 1].map(s => ['rgb(' + scaleColor(s).map(Math.round) + ')',
        Math.expm1(s * Math.log1p(most)).toFixed(most < 20 ? 1 : 0)])));
    }
    pointable(own, (x, y) => {
      if (!hits) return '';
      const px = Math.floor(x / own.width * hits.width), py = Math.floor(y / own.height * hits.height);
      const hit = hits.id[py * hits.width + px];
      return hit >= 0 ? tell(of[hit]) : '';
    });
    let drag = null;
    own.canvas.addEventListener('pointerdown', e => {
      drag = { x: e.clientX, y: e.clientY, ...turn };
      own.canvas.setPointerCapture(e.pointerId);
    });
    own.canvas.addEventListener('pointermove', e => {
      if (!drag) return;
      rotate(drag.yaw + (e.clientX - drag.x) / 150, drag.pitch + (e.clientY - drag.y) / 150);
    });
    for (const end of ['pointerup', 'pointercancel']) own.canvas.addEventListener(end, () => { drag = null; });
    own.canvas.addEventListener('keydown', e => {
      const by = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[e.key];
      if (!by) return;
      e.preventDefault();
      rotate(turn.yaw + by[0], turn.pitch + by[1]);
    });
    return own;
  });
  function rotate(yaw, pitch) {
    turn.yaw = yaw;
    turn.pitch = clamp(pitch, -1.55, 1.55);
    hits = null;
    shown.forEach(own => own.ask());
  }

  // The triangle that is seen at each pixel, and how light it is. All pictures share it.
  let hits = null;
  function look(width, height) {
    if (hits && hits.width === width && hits.height === height) return hits;
    const id = new Int32Array(width * height).fill(-1), depth = new Float32Array(width * height).fill(Infinity);
    const light = new Float32Array(width * height);
    const [cy, sy, cp, sp] = [Math.cos(turn.yaw), Math.sin(turn.yaw), Math.cos(turn.pitch), Math.sin(turn.pitch)];
    const n = points.length / 3, X = new Float32Array(n), Y = new Float32Array(n), Z = new Float32Array(n);
    let [lowX, highX, lowY, highY] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let k = 0; k < n; k++) {
      const x = points[3 * k], y = points[3 * k + 1], z = points[3 * k + 2];
      const x1 = cy * x - sy * y, y1 = sy * x + cy * y;
      X[k] = x1;
      Y[k] = -(cp * z + sp * y1);
      Z[k] = cp * y1 - sp * z;
      lowX = Math.min(lowX, X[k]); highX = Math.max(highX, X[k]);
      lowY = Math.min(lowY, Y[k]); highY = Math.max(highY, Y[k]);
    }
    const scale = 0.94 * Math.min(width / Math.max(highX - lowX, 1e-6), height / Math.max(highY - lowY, 1e-6));
    for (let k = 0; k < n; k++) {
      X[k] = width / 2 + scale * (X[k] - (lowX + highX) / 2);
      Y[k] = height / 2 + scale * (Y[k] - (lowY + highY) / 2);
      Z[k] *= scale;
    }
    for (let t = 0; t < triangles.length / 3; t++) {
      const i = triangles[3 * t], j = triangles[3 * t + 1], k = triangles[3 * t + 2];
      const ux = X[j] - X[i], uy = Y[j] - Y[i], uz = Z[j] - Z[i], vx = X[k] - X[i], vy = Y[k] - Y[i], vz = Z[k] - Z[i];
      const area = ux * vy - uy * vx;
      if (area === 0) continue;
      const nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, length = Math.hypot(nx, ny, area) || 1;
      const shade = 0.45 + 0.55 * Math.abs(0.35 * nx - 0.5 * ny + 0.79 * area) / length;
      const x0 = Math.max(0, Math.ceil(Math.min(X[i], X[j], X[k]) - 0.5)), x1 = Math.min(width - 1, Math.floor(Math.max(X[i], X[j], X[k]) + 0.5));
      const y0 = Math.max(0, Math.ceil(Math.min(Y[i], Y[j], Y[k]) - 0.5)), y1 = Math.min(height - 1, Math.floor(Math.max(Y[i], Y[j], Y[k]) + 0.5));
      for (let y = y0; y <= y1; y++)
        for (let x = x0; x <= x1; x++) {
          const dx = x + 0.5 - X[i], dy = y + 0.5 - Y[i];
          const b = (dx * vy - dy * vx) / area, c = (ux * dy - uy * dx) / area;
          if (b < -1e-4 || c < -1e-4 || b + c > 1.0001) continue;
          const z = Z[i] + b * uz + c * vz, at = y * width + x;
          if (z < depth[at]) { depth[at] = z; id[at] = t; light[at] = shade; }
        }
    }
    hits = { width, height, id, light };
    return hits;
  }
  function paint(own, color, flat) {
    const width = own.canvas.width, height = own.canvas.height, seen = look(width, height);
    const image = own.context.createImageData(width, height), data = image.data, known = new Map();
    for (let at = 0; at < seen.id.length; at++) {
      const t = seen.id[at];
      if (t < 0) continue;
      const patch = of[t];
      let c = known.get(patch);
      if (!c) known.set(patch, c = color(patch));
      // Borders of patches are dark, so that they are seen without colours.
      const right = seen.id[at + 1], below = seen.id[at + width];
      const border = (right >= 0 && of[right] !== patch) || (below >= 0 && of[below] !== patch) ? 0.45 : 1;
      const f = (flat ? 1 : seen.light[at]) * border;
      data[4 * at] = c[0] * f;
      data[4 * at + 1] = c[1] * f;
      data[4 * at + 2] = c[2] * f;
      data[4 * at + 3] = 255;
    }
    own.context.putImageData(image, 0, 0);
  }
  shown.forEach(own => own.resize());
  run.turn = turn;
}

async function start() {
  if (typeof DecompressionStream === 'undefined') {
    for (const place of document.querySelectorAll('.canvas-place'))
      place.append(element('p', { className: 'note', textContent: 'This browser is too old for the pictures; take one of 2023 or later.' }));
    return;
  }
  for (const article of document.querySelectorAll('article[data-run]')) {
    const run = await load(+article.dataset.run);
    const places = {};
    for (const place of article.querySelectorAll('[data-draws]')) places[place.dataset.draws] = place;
    window.weft.runs.push(run);
    if (places.timeline) timeline(run, places);
    if (places.steals) steals(run, places.steals);
    if (places.steps) steps(run, places.steps);
    if (places.cloth) cloth(run, places.cloth);
  }
  window.weft.ready = true;
}
start();
})();
