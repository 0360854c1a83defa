// Charts of curves and bars: axes, marks, and the values under the pointer.
"use strict";
const charts = (() => {
  const {make, draw, is_number} = texts;
  const colours = 6;                  // The style sheet's --c0 and so on. After the last one they repeat, dashed.
  const dashes = ["", "6 3", "2 3"];
  const [left, right, top, bottom] = [58, 8, 8, 22];  // The margins in pixels.
  const label_height = 16;

  const colour_of = (number) => `var(--c${number % colours})`;
  const dash_of = (number) => dashes[Math.floor(number / colours) % dashes.length];
  function swatch(number) {
    const element = make("span", {class: "swatch"});
    element.style.background = colour_of(number);
    return element;
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

  /// Returns a figure for a chart, which has `title` and `format`. It stays when the chart is drawn again, so that a tip does
  /// not flicker.
  function figure_of(chart) {
    const figure = make("figure", {}, make("h3", {}, chart.title), draw("svg", {role: "img", "aria-label": chart.title}),
                        make("div", {class: "tip", hidden: ""}));
    figure.addEventListener("pointermove", (event) => show_tip(figure, chart, event));
    figure.addEventListener("pointerleave", () => {
      figure.querySelector(".tip").hidden = true;
      figure.querySelector(".cross")?.remove();
    });
    return figure;
  }

  function empty_svg(figure) {
    const svg = figure.querySelector("svg");
    const [width, height] = [svg.clientWidth || 400, svg.clientHeight || 240];
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    figure.hover = undefined;
    return {svg, width, height};
  }
  function draw_levels(svg, chart, levels, to_y, width) {
    for (const level of levels) {
      const y = to_y(level);
      svg.append(draw("line", {class: "grid", x1: left, x2: width - right, y1: y, y2: y}));
      svg.append(draw("text", {x: left - 6, y: y + 4, "text-anchor": "end"}, chart.format(level)));
    }
  }

  function drawn_points(curves, usable, to_x, to_y) {
    return curves.flatMap((curve) => curve.points.filter(([, y]) => usable(y)).map(([x, y]) => [to_x(x), to_y(y)]));
  }
  /// Draws a line and its name, below it or above it, where the fewest points of curves are.
  function draw_lowest(svg, text, y, width, points) {
    svg.append(draw("line", {class: "lowest", x1: left, x2: width - right, y1: y, y2: y}));
    const name = draw("text", {class: "lowest"}, text);
    svg.append(name);
    const length = name.getComputedTextLength();
    const hidden_at = ([x, low]) => points.filter(([a, b]) => a > x - 4 && a < x + length + 4 && b > low - label_height && b < low + 4).length;
    const places = [y + label_height - 3, y - 4].flatMap((low) => [[left + 4, low], [width - right - length - 4, low]]);
    const [x, low] = places.reduce((best, place) => hidden_at(place) < hidden_at(best) ? place : best);
    name.setAttribute("x", x);
    name.setAttribute("y", low);
  }

  /// Draws curves, which have `name`, `colour`, `points` as lists of x and y, and `dots` if they are no lines. `look` has
  ///   log:      whether y is logarithmic;
  ///   smooth:   how many points to each side a mean has;
  ///   format_x: a function that writes an x, and name_x, a word that stands before it in a tip;
  ///   marks:    lists of x, kind and text, drawn as vertical lines;
  ///   lowest:   {y, text}, drawn as a horizontal line, if there is such a value.
  function show(figure, chart, curves, look) {
    const {svg, width, height} = empty_svg(figure);
    const is_log = look.log && chart.can_log;
    const usable = (y) => !is_log || y > 0;
    const lowest = look.lowest && usable(look.lowest.y) ? look.lowest : undefined;
    let [low_x, high_x, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const curve of curves)
      for (const [x, y] of curve.points) {
        low_x = Math.min(low_x, x); high_x = Math.max(high_x, x);
        if (usable(y)) { low = Math.min(low, y); high = Math.max(high, y); }
      }
    if (!(low <= high)) return;
    if (lowest) { low = Math.min(low, lowest.y); high = Math.max(high, lowest.y); }
    if (chart.from_zero && !is_log) low = Math.min(0, low);
    if (low === high) { low -= Math.abs(low) / 2 || 1; high += Math.abs(high) / 2 || 1; }
    if (low_x === high_x) high_x += 1;
    const scale = is_log ? Math.log10 : (y) => y;
    const top_value = scale(high);
    let bottom_value = scale(low);
    // Curves lie above the lowest value: its name fits below it.
    if (lowest) {
      const name_height = label_height / (height - top - bottom);
      bottom_value = Math.min(bottom_value, (scale(lowest.y) - name_height * top_value) / (1 - name_height));
    }
    const to_x = (x) => left + (x - low_x) / (high_x - low_x) * (width - left - right);
    const to_y = (y) => top + (top_value - scale(y)) / (top_value - bottom_value || 1) * (height - top - bottom);
    draw_levels(svg, chart, is_log ? log_ticks(low, high) : ticks(low, high, 5), to_y, width);
    for (const x of ticks(low_x, high_x, Math.max(4, Math.floor(width / 80))))
      svg.append(draw("text", {x: to_x(x), y: height - 5, "text-anchor": "middle"}, look.format_x(x)));
    for (const mark of look.marks || []) {
      const x = to_x(mark.x);
      if (x < left || x > width - right) continue;
      const line = draw("line", {class: "mark " + mark.kind, x1: x, x2: x, y1: top, y2: height - bottom});
      line.append(draw("title", {}, mark.text));
      svg.append(line);
    }
    if (lowest) draw_lowest(svg, lowest.text, to_y(lowest.y), width, drawn_points(curves, usable, to_x, to_y));
    const path = (all) => all.filter(([, y]) => usable(y))
      .map(([x, y], i) => `${i ? "L" : "M"}${to_x(x).toFixed(1)} ${to_y(y).toFixed(1)}`).join("");
    for (const curve of curves) {
      const line = {style: `stroke:${colour_of(curve.colour)}`, "stroke-dasharray": dash_of(curve.colour)};
      // A curve of one point has no line.
      const has_dots = curve.dots || curve.points.length === 1;
      if (has_dots)
        for (const [x, y] of curve.points)
          if (usable(y)) svg.append(draw("circle", {cx: to_x(x), cy: to_y(y), r: 3, style: `fill:${colour_of(curve.colour)}`}));
      if (has_dots) continue;
      if (look.smooth > 0) svg.append(draw("path", {class: "curve behind", d: path(curve.points), ...line}));
      svg.append(draw("path", {class: "curve", d: path(smoothed(curve.points, look.smooth)), ...line}));
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
      return found_x === undefined ? undefined
        : {x: `${look.name_x} ${look.format_x(found_x)}`, pixel: to_x(found_x), lines, end: height - bottom};
    };
  }

  /// Draws bars. `groups` has the names below them, and `series` lists of name, colour and values, one value for each group.
  function show_bars(figure, chart, groups, series) {
    const {svg, width, height} = empty_svg(figure);
    const high = Math.max(0, ...series.flatMap((one) => one.values.filter(is_number)));
    if (!(high > 0)) return;
    const to_y = (y) => top + (high - y) / high * (height - top - bottom);
    draw_levels(svg, chart, ticks(0, high, 5), to_y, width);
    const group = (width - left - right) / groups.length, bar = group * 0.8 / series.length;
    const each = Math.ceil(30 / group);  // Names need some pixels.
    groups.forEach((name, i) => {
      const from = left + group * (i + 0.1);
      if (i % each === 0) svg.append(draw("text", {x: from + group * 0.4, y: height - 5, "text-anchor": "middle"}, name));
      series.forEach((one, number) => {
        const y = to_y(one.values[i] || 0);
        const rect = draw("rect", {class: "bar", x: from + bar * number, y, width: bar * 0.92, height: height - bottom - y,
                                   style: `fill:${colour_of(one.colour)}`});
        rect.append(draw("title", {}, `${one.name}, ${name}: ${chart.format(one.values[i] || 0)}`));
        svg.append(rect);
      });
    });
  }

  function show_tip(figure, chart, event) {
    const box = figure.getBoundingClientRect();
    const svg = figure.querySelector("svg").getBoundingClientRect();
    const found = figure.hover && figure.hover(event.clientX - svg.left);
    const tip = figure.querySelector(".tip");
    figure.querySelector(".cross")?.remove();
    tip.hidden = !found;
    if (!found) return;
    tip.replaceChildren(found.x);
    for (const [curve, [, y]] of found.lines)
      tip.append(make("div", {}, swatch(curve.colour), `${curve.name}: ${chart.format(y)}`));
    figure.querySelector("svg").append(draw("line", {class: "cross", x1: found.pixel, x2: found.pixel, y1: top, y2: found.end}));
    const is_right = found.pixel > svg.width / 2;
    tip.style.left = is_right ? "" : `${found.pixel + svg.left - box.left + 10}px`;
    tip.style.right = is_right ? `${box.right - svg.left - found.pixel + 10}px` : "";
  }

  return {figure_of, show, show_bars, swatch, ticks};
})();
