// The page of runs. It asks a head every two seconds and draws what it answers, or draws the runs of a report, whose data the
// page itself holds. It changes nothing.
"use strict";
(() => {
  const {at, make, cell, table, is_number, count, number, loss, share, bytes, duration, clock} = texts;
  const every = 2000;                 // Milliseconds between two questions.
  const every_about = 30000;
  const most_picked = 6;              // Each run that is drawn is asked for.
  const paces = new Map();            // By run: the last minute's [seconds, step].
  const histories = new Map();        // By run: what the head answered.
  const abouts = new Map();           // By run: what else it answered, when, and in which state the run was.
  const sections = new Map();         // By run: its part of the page.
  const figures = new Map();          // By chart.
  const report = at("report") && JSON.parse(at("report").textContent);
  let status = report;
  let heard = 0;                      // When the head answered last.

  // What is chosen stands in the address, so that it can be kept and sent to others.

  const choice = {picked: [], x: "step", log: false, smooth: 4};
  function read_choice() {
    const asked = new URLSearchParams(location.hash.slice(1));
    choice.picked = asked.getAll("run").slice(0, report ? Infinity : most_picked);
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
  /// Returns the runs to draw: those that were picked, or else all of a report. Of a head, one that trains, or else the last.
  function shown_runs() {
    const runs = status.runs || [];
    const picked = choice.picked.filter((name) => runs.some((run) => run.name === name));
    if (picked.length) return picked;
    if (report) return runs.map((run) => run.name);
    const run = runs.find((one) => one.state === "running") || runs.find(is_live) || runs[runs.length - 1];
    return run ? [run.name] : [];
  }
  function pick(name, is_on) {
    const shown = shown_runs().filter((other) => other !== name);
    choice.picked = is_on ? [...shown, name].slice(report ? 0 : -most_picked) : shown;
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
  function steps_of(run) {
    const all = is_number(run.steps) ? ` / ${count(run.steps)}` : "";
    return make("span", {}, count(run.step), make("span", {class: "wide"}, all));
  }
  function name_cell(run, shown) {
    const box = make("input", {type: "checkbox"});
    box.checked = shown.includes(run.name);
    box.addEventListener("change", () => pick(run.name, box.checked));
    const label = make("label", {}, box, " " + run.name);
    if (box.checked) label.insertBefore(charts.swatch(shown.indexOf(run.name)), label.lastChild);
    return cell(label);
  }
  function run_row(run, shown) {
    const done = make("span", {}, make("progress", {max: run.steps || 1, value: run.step || 0}));
    done.append(` ${run.steps > 0 ? Math.floor(100 * run.step / run.steps) : 0} %`);
    const speed = pace(run);
    const where = run.why || run.recovered || run.where || "";
    return make("tr", {"data-run": run.name},
      name_cell(run, shown), cell(run.state, state_class[run.state]),
      cell(steps_of(run)), cell(done, "wide"),
      cell(loss(run.loss)), cell(number(speed), "wide"),
      cell(speed ? duration((run.steps - run.step) / speed) : "–"),
      cell(share(run.goodput), "wide"), cell(count(run.recoveries || 0), "wide"),
      cell(run.warning ? run.warning : where, "text wide"));
  }
  const run_columns = [["run"], ["state"], ["step"], ["", "wide"], ["loss"], ["steps/s", "wide"], ["time left"],
                       ["goodput", "wide"], ["recoveries", "wide"], ["", "text wide"]];
  /// Returns the row of a report, which looks back.
  function past_row(run, shown) {
    return make("tr", {"data-run": run.name},
      name_cell(run, shown), cell(run.ended, run.state === "done" || run.state === "stopped" ? "good" : "bad"),
      cell(steps_of(run)), cell(loss(run.loss)), cell(loss(run.best_loss), "wide"), cell(loss(run.validation), "wide"),
      cell(loss(run.best_validation), "wide"), cell(number(run.rate), "wide"), cell(share(run.bubble), "wide"),
      cell(bytes(run.memory), "wide"), cell(count(run.checkpoints), "wide"), cell(count(run.warnings), "wide"));
  }
  const past_columns = [["run"], ["ended"], ["step"], ["loss"], ["best loss", "wide"], ["validation", "wide"], ["best validation", "wide"],
                        ["rate", "wide"], ["bubble", "wide"], ["memory", "wide"], ["checkpoints", "wide"], ["warnings", "wide"]];
  function show_runs() {
    const runs = status.runs || [];
    const shown = shown_runs();
    const focused = document.activeElement?.closest?.("tr[data-run]")?.dataset.run;
    const rows = runs.map((run) => report ? past_row(run, shown) : run_row(run, shown));
    at("runs").replaceChildren(runs.length ? table(report ? past_columns : run_columns, rows)
                                           : make("p", {class: "faint"}, "No runs yet: submit one with troupe submit CONFIG."));
    for (const row of at("runs").querySelectorAll("tr[data-run]"))
      if (row.dataset.run === focused) row.querySelector("input").focus();
  }
  function node_row(node) {
    const gpus = node.gpus || [];
    const busy = gpus.map((gpu) => gpu.fault ? "does not answer" : share(gpu.busy)).join(", ");
    const slow = (node.stragglers || []).map((one) => `${one.cause} is slow in ${one.run}`).join("; ");
    return make("tr", {"data-node": node.name},
      cell(node.name), cell(node.host || "–", "text wide"), cell(count(node.cores)), cell(share(node.busy)),
      cell(node.memory_used === undefined ? bytes(node.memory) : `${bytes(node.memory_used)} of ${bytes(node.memory)}`),
      cell(gpus.length ? `${gpus.length}: ${busy}` : "none"),
      cell(node.cordoned ? "cordoned" : slow || "ready", "text " + (node.cordoned || slow ? "waiting" : "good")));
  }
  function show_nodes() {
    const nodes = status.nodes || [];
    const columns = [["node"], ["host", "text wide"], ["cores"], ["busy"], ["memory"], ["GPUs"], ["state", "text"]];
    at("node-count").textContent = nodes.length;
    at("nodes").replaceChildren(nodes.length ? table(columns, nodes.map(node_row))
                                             : make("p", {class: "faint"}, "No nodes yet: start one with troupe node."));
  }

  // Charts.

  const run_charts = [
    {key: "loss", title: "loss", format: number, can_log: true},
    {key: "rate", title: "rate, tokens or samples per second", format: number, from_zero: true},
    {key: "grad_norm", title: "gradient norm", format: number, can_log: true},
    {key: "lr", title: "learning rate", format: number, from_zero: true},
    {key: "goodput", title: "goodput: share of time for steps that count", format: share, from_zero: true},
    {key: "bubble", title: "bubble: share of time in which devices wait", format: share, from_zero: true},
    {key: "memory", title: "memory", format: bytes, from_zero: true},
  ];
  const stage_charts = [
    {key: "gap", title: "gap between the passes", format: number, from_zero: true},
    {key: "prediction_error", title: "prediction error, below 1 it helps", format: number, from_zero: true},
    {key: "penalty_mean", title: "mean gap penalty", format: number, from_zero: true},
  ];
  const delay_chart = {key: "delays", title: "micro-batches by delay: steps between the forward and the backward pass", format: count};
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

  /// Returns the figure of a chart within a box. `name` tells it from others.
  function figure_in(box, name, chart) {
    let figure = figures.get(name);
    if (!figure) {
      figure = charts.figure_of(chart);
      figure.id = name;
      figures.set(name, figure);
      box.append(figure);
    }
    return figure;
  }
  function look_now(marks) {
    return {log: choice.log, smooth: choice.smooth, marks, format_x,
            name_x: choice.x === "time" ? "after" : choice.x === "seen" ? "seen" : "step"};
  }
  /// Returns the least loss that any model can have on the data of all these runs, if it is known and the same.
  function lowest_of(names) {
    const known = names.map((name) => abouts.get(name)?.lowest_loss);
    return names.length && known.every((one) => is_number(one) && one === known[0])
      ? {y: known[0], text: `lowest possible: ${number(known[0])}`} : undefined;
  }
  function show_charts() {
    const shown = shown_runs().filter((name) => histories.has(name));
    const pasts = shown.map((name) => ({name, past: histories.get(name)}));
    const marks = pasts.length === 1 ? marks_of(pasts[0].past) : [];
    at("one").hidden = shown.length === 0;  // First: a chart is as wide as its place.
    for (const chart of run_charts) {
      const curves = [];
      pasts.forEach(({name, past}, i) => {
        const found = points(past, chart.key);
        if (found.length) curves.push({name, colour: i, points: found});
        if (chart.key !== "loss" || !past.evals.length || !past.rows.length) return;
        const evals = past.evals.map(([step, time, loss]) => [x_of(past, step, time, row_at(past, step)[2]), loss]);
        curves.push({name: name + ", validation", colour: i + (pasts.length > 1 ? 0 : 1), points: evals, dots: true});
      });
      const figure = figure_in(at("charts"), "chart-" + chart.key, chart);
      figure.hidden = curves.length === 0;
      const look = look_now(marks);
      if (chart.key === "loss") look.lowest = lowest_of(shown);
      if (curves.length) charts.show(figure, chart, curves, look);
    }
    at("names").replaceChildren(...pasts.map(({name, past}, i) =>
      make("span", {}, charts.swatch(i), name + (past.whole ? "" : " (its events are still being read)"))),
      ...[...new Set(marks.map((mark) => mark.kind))].map((kind) => make("span", {class: "legend " + kind}, "┆ " + mark_names[kind])));
  }

  // What is known of a run beside its numbers.

  function facts_of(name) {
    const past = histories.get(name), about = abouts.get(name);
    const facts = (about?.facts || []).slice();
    const begun = about?.begun ?? past?.begun;
    if (is_number(begun)) facts.push(["began", new Date(1000 * begun).toLocaleString("en-GB")]);
    const run = (status.runs || []).find((one) => one.name === name);
    if (past && is_number(past.begun)) facts.push([run && is_live(run) && !report ? "trains for" : "took", duration(past.newest - past.begun)]);
    return facts;
  }
  const opened = new Set();  // The runs whose whole command is shown.
  /// Returns a text; a command, which may be long, as a line that can be opened.
  function fact(run, name, text) {
    if (name !== "command" || !text) return text || "–";
    const details = make("details", {class: "short", ...(opened.has(run) ? {open: ""} : {})},
                         make("summary", {title: text}, text.replace(/^\S*\//, "")), text);
    details.addEventListener("toggle", () => details.open ? opened.add(run) : opened.delete(run));
    return details;
  }
  function show_facts() {
    const shown = shown_runs();
    const all = shown.map((name) => new Map(facts_of(name)));
    const told = (i, name) => fact(shown[i], name, all[i].get(name));
    const names = [...new Set(all.flatMap((facts) => [...facts.keys()]))];
    if (shown.length > 1)
      return at("facts").replaceChildren(make("div", {class: "scroll"}, table([[""], ...shown.map((name) => [name, "text"])],
        names.map((name) => make("tr", {}, cell(name), ...all.map((_, i) => cell(told(i, name), "text")))))));
    at("facts").replaceChildren(make("dl", {}, ...names.map((name) => make("div", {}, make("dt", {}, name), make("dd", {}, told(0, name))))));
  }

  function section_of(name) {
    const known = sections.get(name);
    if (known) return known;
    const part = {
      where: make("p", {class: "faint"}), notes: make("ul", {class: "notes"}), slow: make("div", {class: "scroll"}),
      line: timeline.box_of(), stages: make("div", {class: "charts"}, make("div", {class: "names"})), told: make("ul", {class: "told"}), config: make("pre", {}),
      configuration: make("details", {class: "configuration"}, make("summary", {}, "Configuration")), told_config: false,
    };
    part.configuration.append(part.config);
    part.configuration.addEventListener("toggle", () => show_configuration(name));
    part.element = make("section", {"data-about": name}, make("h2", {}, name), part.where, part.notes, part.slow, part.line, part.stages,
                        make("h3", {}, "Events"), part.told, part.configuration);
    at("each").append(part.element);
    sections.set(name, part);
    return part;
  }
  function show_slow(part, all) {
    const columns = [["slow node"], ["device"], ["cause", "text"], ["times longer"], ["of a step"], ["from step"], ["to step"]];
    part.slow.hidden = !all || all.length === 0;
    if (part.slow.hidden) return;
    part.slow.replaceChildren(table(columns, all.map((one) => make("tr", {}, cell(one.node), cell(count(one.device)), cell(one.cause, "text"),
      cell(number(one.factor)), cell(share(one.share)), cell(count(one.since)), cell(count(one.until))))));
  }
  /// Draws how late the gradients of an asynchronous run were, by stage.
  function show_stages(part, name, past) {
    const columns = past.columns.filter((column) => column.includes(" "));
    part.stages.hidden = columns.length === 0;
    if (part.stages.hidden) return;
    for (const chart of stage_charts) {
      const curves = columns.filter((column) => column.startsWith(chart.key + " ")).map((column) => {
        const stage = Number(column.slice(chart.key.length + 1));
        return {name: `stage ${stage}`, colour: stage, points: points(past, column)};
      }).filter((curve) => curve.points.length);
      const figure = figure_in(part.stages, `chart-${chart.key}-${name}`, chart);
      figure.hidden = curves.length === 0;
      if (curves.length) charts.show(figure, chart, curves, look_now(marks_of(past)));
    }
    part.stages.querySelector(".names").replaceChildren(...past.delays.map(([stage]) =>
      make("span", {}, charts.swatch(stage), `stage ${stage}`)));
    const longest = Math.max(...past.delays.map(([, counts]) => counts.length));
    const groups = Array.from({length: longest}, (_, delay) => String(delay) + (delay === past.most_delay ? "+" : ""));
    const figure = figure_in(part.stages, `chart-delays-${name}`, delay_chart);
    figure.hidden = !(longest > 0);
    if (!figure.hidden) charts.show_bars(figure, delay_chart, groups, past.delays.map(([stage, values]) => ({name: `stage ${stage}`, colour: stage, values})));
  }
  /// Returns what a run that stands still waits for: what its players told since its last step.
  function waits_of(run, past) {
    if (!past || !is_live(run)) return [];
    const last = past.rows.length ? past.rows[past.rows.length - 1][1] : 0;
    const stalls = past.told.filter((one) => one.type === "stage.stalled" && one.time > last);
    return [...new Set(stalls.map((one) => one.text))].map((text) => `no step since ${clock(last || past.begun)}: ${text}`);
  }
  function show_each() {
    const shown = shown_runs();
    for (const [name, part] of sections) part.element.hidden = !shown.includes(name);
    for (const name of shown) {
      const part = section_of(name), past = histories.get(name);
      const run = (status.runs || []).find((one) => one.name === name) || {};
      at("each").append(part.element);
      part.where.textContent = run.where ? "Placement: " + run.where : "";
      const notes = (run.notes || []).map((note) => make("li", {class: "bad"}, note));
      part.notes.replaceChildren(...waits_of(run, past).map((wait) => make("li", {class: "waits-for"}, wait)), ...notes);
      show_slow(part, run.stragglers);
      timeline.show(part.line, abouts.get(name)?.timeline);
      part.stages.hidden = !past;
      part.told.replaceChildren(...(past?.told || []).slice().reverse().map((one) => {
        const kind = one.type === "warn" || one.type === "stage.stalled" ? "waiting" : "";
        return make("li", kind ? {class: kind} : {}, make("time", {}, clock(one.time)), one.text);
      }));
      if (past) show_stages(part, name, past);
      show_configuration(name);
    }
  }
  async function show_configuration(name) {
    const part = sections.get(name);
    if (!part.configuration.open || part.told_config) return;
    const absent = "The run has not kept a configuration yet.";
    if (report) {
      part.config.textContent = status.runs.find((run) => run.name === name)?.config || absent;
      return;
    }
    const answer = await fetch(`api/runs/${encodeURIComponent(name)}/config`).catch(() => undefined);
    part.told_config = Boolean(answer && answer.ok);
    part.config.textContent = part.told_config ? await answer.text() : absent;
  }

  function show() {
    if (!status) return;
    show_runs();
    if (!report) show_nodes();
    show_charts();
    show_facts();
    show_each();
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
  function take_history(name, past) {
    past.began = past.rows.length ? past.rows[0][1] - (past.rows[0][past.columns.indexOf("seconds")] || 0) : 0;
    histories.set(name, past);
  }
  /// Asks for the status and for the histories of the runs that are shown. Which these are may change with the status: then it
  /// asks again.
  async function look() {
    const asked = status ? shown_runs() : choice.picked;
    const answer = await ask("api/look?" + new URLSearchParams(asked.map((name) => ["run", name])));
    status = answer.status;
    for (const [name, past] of Object.entries(answer.histories)) take_history(name, past);
    if (shown_runs().some((name) => !asked.includes(name))) await look();
  }
  /// Asks for what changes seldom: when the run's state is another one, and now and then.
  async function ask_about(name) {
    const state = status.runs.find((run) => run.name === name)?.state;
    const known = abouts.get(name);
    if (known && known.state === state && performance.now() - known.asked < every_about) return;
    const about = await ask(`api/runs/${encodeURIComponent(name)}/about`);
    abouts.set(name, {...about, state, asked: performance.now()});
  }
  async function ask_all() {
    try {
      await look();
      heard = performance.now();
      note_paces();
      for (const name of shown_runs()) await ask_about(name);
      for (const known of [histories, abouts]) for (const name of known.keys()) if (!shown_runs().includes(name)) known.delete(name);
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

  function show_report() {
    for (const run of report.runs) {
      take_history(run.name, run.history);
      abouts.set(run.name, run.about);
    }
    at("title").textContent = report.title;
    at("cluster").hidden = true;
    at("app").hidden = false;
    at("plain").hidden = true;
    show();
  }

  at("x").addEventListener("change", () => { choice.x = at("x").value; keep_choice(); });
  at("log").addEventListener("change", () => { choice.log = at("log").checked; keep_choice(); });
  at("smooth").addEventListener("input", () => { choice.smooth = Number(at("smooth").value); keep_choice(); });
  addEventListener("resize", show);
  read_choice();
  if (report) {
    addEventListener("hashchange", () => { read_choice(); show(); });
    show_report();
  } else {
    addEventListener("hashchange", () => { read_choice(); ask_all(); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) ask_all(); });
    setInterval(show_link, 1000);
    go_on();
  }
})();
