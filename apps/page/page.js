// The page of a head: it asks the head every two seconds and draws what it answers. It changes nothing.
"use strict";
(() => {
  const every = 2000;                 // Milliseconds between two questions.
  const colours = 6;
  const most_picked = 6;
  const paces = new Map();            // By run: the last minute's [seconds, step].
  const histories = new Map();        // By run: what the head answered.
  let status = null;
  let heard = 0;                      // When the head answered last.
  let told_configuration = "";

  // Elements.

  const at = (id) => document.getElementById(id);
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
  function draw(tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes))
      if (key === "style") element.style.cssText = value;  // The page's policy forbids the attribute.
      else element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // Numbers as people read them. What is not known is a dash.

  const is_number = (value) => typeof value === "number" && Number.isFinite(value);
  function count(value) { return is_number(value) ? Math.round(value).toLocaleString("en-US") : "–"; }
  function number(value) {
    if (!is_number(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
    if (size >= 100) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(4)));
  }
  function share(value) { return is_number(value) ? (100 * value).toFixed(1) + " %" : "–"; }
  function bytes(value) {
    if (!is_number(value)) return "–";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (value >= 1024 && unit + 1 < units.length) { value /= 1024; ++unit; }
    return (value < 10 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
  }
  function duration(seconds) {
    if (!is_number(seconds) || seconds < 0) return "–";
    if (seconds < 60) return (seconds < 9.95 ? Number(seconds.toPrecision(2)) : Math.round(seconds)) + " s";
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return minutes + " min " + Math.floor(seconds % 60) + " s";
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? hours + " h " + (minutes % 60) + " min" : Math.floor(hours / 24) + " d " + (hours % 24) + " h";
  }
  function clock(seconds) {
    return new Date(1000 * seconds).toLocaleTimeString("en-GB");
  }

  // What is chosen stands in the address, so that it can be kept and sent to others.

  const choice = {picked: [], x: "step", log: false, smooth: 4};
  function read_choice() {
    const asked = new URLSearchParams(location.hash.slice(1));
    choice.picked = asked.getAll("run").slice(0, most_picked);
    choice.x = ["step", "time", "seen"].includes(asked.get("x")) ? asked.get("x") : "step";
    choice.log = asked.get("log") === "1";
    const smooth = Number(asked.get("smooth") ?? 4);
    choice.smooth = smooth >= 0 && smooth <= 50 ? smooth : 4;
    at("x").value = choice.x;
    at("log").checked = choice.log;
    at("smooth").value = choice.smooth;
  }
  function keep_choice() {
    const asked = new URLSearchParams();
    for (const run of choice.picked) asked.append("run", run);
    if (choice.x !== "step") asked.set("x", choice.x);
    if (choice.log) asked.set("log", "1");
    if (choice.smooth !== 4) asked.set("smooth", choice.smooth);
    history.replaceState(null, "", "#" + asked);
    show();
  }
  const is_live = (run) => ["starting", "running", "paused"].includes(run.state);
  /// Returns the runs to draw: those that were picked, or else one that trains, or else the last.
  function shown_runs() {
    const runs = status.runs || [];
    const picked = choice.picked.filter((name) => runs.some((run) => run.name === name));
    if (picked.length) return picked;
    const run = runs.find((one) => one.state === "running") || runs.find(is_live) || runs[runs.length - 1];
    return run ? [run.name] : [];
  }
  function pick(name, is_on) {
    const shown = shown_runs().filter((other) => other !== name);
    choice.picked = is_on ? [...shown, name].slice(-most_picked) : shown;
    keep_choice();
  }

  // The pace of a run: steps in the last minute, as this page saw them.

  function note_paces() {
    const now = performance.now() / 1000;
    const names = new Set();
    for (const run of status.runs || []) {
      names.add(run.name);
      let seen = paces.get(run.name) || [];
      if (run.state !== "running" || (seen.length && run.step < seen[seen.length - 1][1])) seen = [];
      if (run.state === "running") seen.push([now, run.step]);
      while (seen.length && now - seen[0][0] > 60) seen.shift();
      paces.set(run.name, seen);
    }
    for (const name of paces.keys()) if (!names.has(name)) paces.delete(name);
  }
  /// Returns steps in a second, or nothing until enough was seen.
  function pace(run) {
    const seen = paces.get(run.name) || [];
    if (seen.length < 2) return undefined;
    const [first, last] = [seen[0], seen[seen.length - 1]];
    return last[0] - first[0] >= 3 && last[1] > first[1] ? (last[1] - first[1]) / (last[0] - first[0]) : undefined;
  }

  // Tables.

  const state_class = {running: "good", done: "good", failed: "bad", paused: "waiting", starting: "waiting"};
  function cell(content, kind) {
    const element = make("td", kind ? {class: kind} : {});
    element.append(content);
    return element;
  }
  function table(columns, rows) {
    const head = make("tr");
    for (const [name, kind] of columns) head.append(make("th", {scope: "col", ...(kind ? {class: kind} : {})}, name));
    return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  }
  function steps_of(run) {
    return make("span", {}, count(run.step), make("span", {class: "wide"}, ` / ${count(run.steps)}`));
  }
  function run_row(run, shown) {
    const box = make("input", {type: "checkbox"});
    box.checked = shown.includes(run.name);
    box.addEventListener("change", () => pick(run.name, box.checked));
    const label = make("label", {}, box, " " + run.name);
    if (box.checked) {
      const swatch = make("span", {class: "swatch"});
      swatch.style.background = `var(--c${shown.indexOf(run.name) % colours})`;
      label.insertBefore(swatch, label.lastChild);
    }
    const done = make("span", {}, make("progress", {max: run.steps || 1, value: run.step || 0}));
    done.append(` ${run.steps > 0 ? Math.floor(100 * run.step / run.steps) : 0} %`);
    const speed = pace(run);
    const where = run.why || run.recovered || run.where || "";
    return make("tr", {"data-run": run.name},
      cell(label), cell(run.state, state_class[run.state]),
      cell(steps_of(run)), cell(done, "wide"),
      cell(number(run.loss)), cell(number(speed), "wide"),
      cell(speed ? duration((run.steps - run.step) / speed) : "–"),
      cell(share(run.goodput), "wide"), cell(count(run.recoveries || 0), "wide"),
      cell(run.warning ? run.warning : where, "text wide"));
  }
  const run_columns = [["run"], ["state"], ["step"], ["", "wide"], ["loss"], ["steps/s", "wide"], ["time left"],
                       ["goodput", "wide"], ["recoveries", "wide"], ["", "text wide"]];
  function show_runs() {
    const runs = status.runs || [];
    const shown = shown_runs();
    const focused = document.activeElement?.closest?.("tr[data-run]")?.dataset.run;
    at("runs").replaceChildren(runs.length ? table(run_columns, runs.map((run) => run_row(run, shown)))
                                           : make("p", {class: "faint"}, "No runs yet: submit one with troupe submit CONFIG."));
    for (const row of at("runs").querySelectorAll("tr[data-run]"))
      if (row.dataset.run === focused) row.querySelector("input").focus();
  }
  function node_row(node) {
    const gpus = node.gpus || [];
    const busy = gpus.map((gpu) => gpu.fault ? "does not answer" : share(gpu.busy)).join(", ");
    const slow = (node.stragglers || []).map((one) => `${one.cause} is slow in ${one.run}`).join("; ");
    return make("tr", {"data-node": node.name},
      cell(node.name), cell(node.host || "–", "text wide"), cell(count(node.cores)), cell(bytes(node.memory)),
      cell(gpus.length ? `${gpus.length}: ${busy}` : "none"),
      cell(node.cordoned ? "cordoned" : slow || "ready", "text " + (node.cordoned || slow ? "waiting" : "good")));
  }
  function show_nodes() {
    const nodes = status.nodes || [];
    const columns = [["node"], ["host", "text wide"], ["cores"], ["memory"], ["GPUs"], ["state", "text"]];
    at("node-count").textContent = nodes.length;
    at("nodes").replaceChildren(nodes.length ? table(columns, nodes.map(node_row))
                                             : make("p", {class: "faint"}, "No nodes yet: start one with troupe node."));
  }

  // Charts.

  const charts = [
    {key: "loss", title: "loss", format: number, can_log: true},
    {key: "rate", title: "rate, tokens or samples per second", format: number, from_zero: true},
    {key: "grad_norm", title: "gradient norm", format: number, can_log: true},
    {key: "lr", title: "learning rate", format: number, from_zero: true},
    {key: "goodput", title: "goodput: share of time for steps that count", format: share, from_zero: true},
    {key: "bubble", title: "bubble: share of time in which devices wait", format: share, from_zero: true},
    {key: "memory", title: "memory", format: bytes, from_zero: true},
  ];
  /// Returns the x of a row by the chosen axis.
  function x_of(past, step, time, seen) {
    if (choice.x === "step") return step;
    return choice.x === "seen" ? seen : time - past.began;
  }
  function format_x(x) { return choice.x === "time" ? duration(x) : count(x); }
  function points(past, key) {
    const column = past.columns.indexOf(key);
    const found = [];
    for (const row of past.rows)
      if (is_number(row[column])) found.push([x_of(past, row[0], row[1], row[2]), row[column]]);
    return found;
  }
  /// Returns where in the rows a step is; steps between rows belong to the next one.
  function row_at(past, step) {
    let low = 0, high = past.rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (past.rows[middle][0] < step) low = middle + 1; else high = middle;
    }
    return past.rows[low];
  }
  function smoothed(all, reach) {
    if (reach === 0) return all;
    const means = [];
    for (let i = 0; i < all.length; ++i) {
      // The ends have as many points to each side, so that the curve does not lag.
      const side = Math.min(reach, i, all.length - 1 - i);
      let sum = 0;
      for (let j = i - side; j <= i + side; ++j) sum += all[j][1];
      means.push([all[i][0], sum / (2 * side + 1)]);
    }
    return means;
  }
  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted;
    if (!(rough > 0)) return [low];
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); ++i) found.push(i * step);
    return found;
  }
  /// Returns 1, 2 and 5 times powers of ten; round numbers if there are fewer than two of them.
  function log_ticks(low, high) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; ++power)
      for (const factor of [1, 2, 5]) {
        const level = factor * 10 ** power;
        if (level >= low && level <= high) found.push(level);
      }
    return found.length > 1 ? found : ticks(low, high, 4);
  }
  const mark_names = {recovered: "a recovery", plan: "another plan", slow: "a slow device or link"};
  const mark_classes = {"run.recovered": "recovered", "plan.changed": "plan", "node.straggler": "slow"};
  function marks_of(past) {
    const marks = [];
    for (const one of past.told) {
      const kind = mark_classes[one.type];
      if (!kind || !past.rows.length) continue;
      const row = row_at(past, one.step);
      marks.push({x: x_of(past, Math.min(one.step, row[0]), row[1], row[2]), kind, text: `step ${one.step}: ${one.text}`});
    }
    return marks;
  }

  /// Draws a chart into a figure that stays, so that a tip does not flicker.
  function draw_chart(figure, chart, curves, marks) {
    const svg = figure.querySelector("svg");
    const width = svg.clientWidth || 400, height = svg.clientHeight || 240;
    const left = 58, right = 8, top = 8, bottom = 22;
    const is_log = choice.log && chart.can_log;
    const usable = (y) => !is_log || y > 0;
    let [low_x, high_x, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const curve of curves)
      for (const [x, y] of curve.points) {
        low_x = Math.min(low_x, x); high_x = Math.max(high_x, x);
        if (usable(y)) { low = Math.min(low, y); high = Math.max(high, y); }
      }
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (!(low <= high)) return;
    if (chart.from_zero && !is_log) low = Math.min(0, low);
    if (low === high) { low -= Math.abs(low) / 2 || 1; high += Math.abs(high) / 2 || 1; }
    if (low_x === high_x) high_x += 1;
    const scale = is_log ? Math.log10 : (y) => y;
    const [bottom_value, top_value] = [scale(low), scale(high)];
    const to_x = (x) => left + (x - low_x) / (high_x - low_x) * (width - left - right);
    const to_y = (y) => top + (top_value - scale(y)) / (top_value - bottom_value || 1) * (height - top - bottom);
    const levels = is_log ? log_ticks(low, high) : ticks(low, high, 5);
    for (const level of levels) {
      const y = to_y(level);
      svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: y, y2: y}));
      svg.append(draw("text", {x: left - 6, y: y + 4, "text-anchor": "end"}, chart.format(level)));
    }
    for (const x of ticks(low_x, high_x, Math.max(4, Math.floor(width / 80))))
      svg.append(draw("text", {x: to_x(x), y: height - 5, "text-anchor": "middle"}, format_x(x)));
    for (const mark of marks) {
      const x = to_x(mark.x);
      if (x < left || x > width - right) continue;
      const line = draw("line", {class: "mark " + mark.kind, x1: x, x2: x, y1: top, y2: height - bottom});
      line.append(draw("title", {}, mark.text));
      svg.append(line);
    }
    const path = (all) => all.filter(([, y]) => usable(y))
      .map(([x, y], i) => `${i ? "L" : "M"}${to_x(x).toFixed(1)} ${to_y(y).toFixed(1)}`).join("");
    for (const curve of curves) {
      const colour = `stroke:var(--c${curve.colour})`;
      if (choice.smooth > 0 && !curve.dots)
        svg.append(draw("path", {class: "curve behind", d: path(curve.points), style: colour}));
      if (curve.dots)
        for (const [x, y] of curve.points)
          if (usable(y)) svg.append(draw("circle", {cx: to_x(x), cy: to_y(y), r: 3, style: `fill:var(--c${curve.colour})`}));
      if (!curve.dots)
        svg.append(draw("path", {class: "curve", d: path(smoothed(curve.points, choice.smooth)), style: colour}));
    }
    figure.hover = (pixel) => {
      const x = low_x + (pixel - left) / (width - left - right) * (high_x - low_x);
      const lines = [];
      let found_x;
      for (const curve of curves) {
        let best;
        for (const point of curve.points)
          if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
        if (best) { found_x ??= best[0]; lines.push([curve, best]); }
      }
      return found_x === undefined ? undefined : {x: found_x, pixel: to_x(found_x), lines, top, end: height - bottom};
    };
  }
  function show_tip(figure, chart, event) {
    const box = figure.getBoundingClientRect();
    const svg = figure.querySelector("svg").getBoundingClientRect();
    const found = figure.hover && figure.hover(event.clientX - svg.left);
    const tip = figure.querySelector(".tip");
    figure.querySelector(".cross")?.remove();
    tip.hidden = !found;
    if (!found) return;
    tip.replaceChildren(`${choice.x === "time" ? "after" : choice.x === "seen" ? "seen" : "step"} ${format_x(found.x)}`);
    for (const [curve, [, y]] of found.lines) {
      const swatch = make("span", {class: "swatch"});
      swatch.style.background = `var(--c${curve.colour})`;
      tip.append(make("div", {}, swatch, `${curve.name}: ${chart.format(y)}`));
    }
    figure.querySelector("svg").append(draw("line", {class: "cross", x1: found.pixel, x2: found.pixel, y1: found.top, y2: found.end}));
    const is_right = found.pixel > svg.width / 2;
    tip.style.left = is_right ? "" : `${found.pixel + svg.left - box.left + 10}px`;
    tip.style.right = is_right ? `${box.right - svg.left - found.pixel + 10}px` : "";
  }
  function figure_of(chart) {
    const known = document.getElementById("chart-" + chart.key);
    if (known) return known;
    const figure = make("figure", {id: "chart-" + chart.key}, make("h3", {}, chart.title),
                        draw("svg", {role: "img", "aria-label": chart.title}), make("div", {class: "tip", hidden: ""}));
    figure.addEventListener("pointermove", (event) => show_tip(figure, chart, event));
    figure.addEventListener("pointerleave", () => {
      figure.querySelector(".tip").hidden = true;
      figure.querySelector(".cross")?.remove();
    });
    at("charts").append(figure);
    return figure;
  }
  function show_charts() {
    const shown = shown_runs().filter((name) => histories.has(name));
    const pasts = shown.map((name) => ({name, past: histories.get(name)}));
    const marks = pasts.length === 1 ? marks_of(pasts[0].past) : [];
    for (const chart of charts) {
      const curves = [];
      pasts.forEach(({name, past}, i) => {
        const found = points(past, chart.key);
        if (found.length) curves.push({name, colour: i % colours, points: found});
        if (chart.key !== "loss" || !past.evals.length || !past.rows.length) return;
        const evals = past.evals.map(([step, time, loss]) => [x_of(past, step, time, row_at(past, step)[2]), loss]);
        curves.push({name: name + ", validation", colour: (i + (pasts.length > 1 ? 0 : 1)) % colours, points: evals, dots: true});
      });
      const figure = figure_of(chart);
      figure.hidden = curves.length === 0;
      if (curves.length) draw_chart(figure, chart, curves, marks);
    }
    at("names").replaceChildren(...pasts.map(({name, past}, i) => {
      const swatch = make("span", {class: "swatch"});
      swatch.style.background = `var(--c${i % colours})`;
      return make("span", {}, swatch, name + (past.whole ? "" : " (its events are still being read)"));
    }), ...[...new Set(marks.map((mark) => mark.kind))].map((kind) =>
      make("span", {class: "legend " + kind}, "┆ " + mark_names[kind])));
    at("one").hidden = shown.length === 0;
  }

  // What a run told, and its configuration.

  function show_told() {
    const name = shown_runs()[0];
    const past = histories.get(name);
    const run = (status.runs || []).find((one) => one.name === name);
    at("told-of").textContent = name ? `What ${name} told` : "";
    at("where").textContent = run && run.where ? "Placement: " + run.where : "";
    if (!past) return at("told").replaceChildren();
    at("told").replaceChildren(...past.told.slice().reverse().map((one) => {
      const kind = one.type === "warn" || one.type === "stage.stalled" ? "waiting" : "";
      return make("li", kind ? {class: kind} : {}, make("time", {}, clock(one.time)), one.text);
    }));
  }
  async function show_configuration() {
    const name = shown_runs()[0];
    if (!at("configuration").open || !name || told_configuration === name) return;
    told_configuration = name;
    const answer = await fetch(`api/runs/${encodeURIComponent(name)}/config`).catch(() => undefined);
    at("config").textContent = answer && answer.ok ? await answer.text() : "The run has not kept a configuration yet.";
  }

  function show() {
    if (!status) return;
    show_runs();
    show_nodes();
    show_charts();
    show_told();
    show_configuration();
  }

  // Questions to the head.

  async function ask(path) {
    const answer = await fetch(path, {cache: "no-store", signal: AbortSignal.timeout(10000)});
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  }
  function show_link() {
    const link = at("link");
    const away = (performance.now() - heard) / 1000;
    const is_away = status !== null && away > 6;
    link.className = is_away ? "away" : "";
    if (status === null) link.textContent = "asking the head ...";
    else link.textContent = is_away ? `The head does not answer since ${duration(away)}. Numbers below are from before.` : "live";
  }
  async function ask_all() {
    try {
      const answer = await ask("api/status");
      status = answer;
      heard = performance.now();
      note_paces();
      for (const name of shown_runs()) {
        const past = await ask(`api/runs/${encodeURIComponent(name)}`);
        past.began = past.rows.length ? past.rows[0][1] - (past.rows[0][past.columns.indexOf("seconds")] || 0) : 0;
        histories.set(name, past);
      }
      for (const name of histories.keys()) if (!shown_runs().includes(name)) histories.delete(name);
      at("app").hidden = false;
      at("plain").hidden = true;
      show();
    } catch (error) {
      // The head may be away for a while: what was known stays, and the line above says so.
    }
    show_link();
  }
  async function go_on() {
    if (!document.hidden) await ask_all();
    setTimeout(go_on, every);
  }

  at("x").addEventListener("change", () => { choice.x = at("x").value; keep_choice(); });
  at("log").addEventListener("change", () => { choice.log = at("log").checked; keep_choice(); });
  at("smooth").addEventListener("input", () => { choice.smooth = Number(at("smooth").value); keep_choice(); });
  at("configuration").addEventListener("toggle", show_configuration);
  addEventListener("hashchange", () => { read_choice(); ask_all(); });
  addEventListener("resize", show);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask_all(); });
  setInterval(show_link, 1000);
  read_choice();
  go_on();
})();
