// The measured timeline of a run's devices: what each one computed in the last rounds, and when it waited.
"use strict";
const timeline = (() => {
  const {make, draw, share, duration} = texts;
  const kinds = {
    F: ["forward", "forward"], B: ["backward", "backward"], I: ["backward, input", "input"], W: ["backward, weights", "weights"],
    R: ["recompute", "recompute"], A: ["gradients sent", "give"], O: ["update", "update"], G: ["weights gathered", "gather"],
    U: ["weights freed", "gather"],
  };
  const [left, right, top, bottom, row, gap] = [58, 46, 4, 22, 20, 6];
  const least_pixels = 11;            // The usual width of a pass, so that people can tell passes apart.
  const most_rows = 64;

  /// Writes a time of a timeline, which is short.
  function moment(seconds) {
    if (Math.abs(seconds) < 1) return `${Number((1000 * seconds).toPrecision(3))} ms`;
    return seconds < 60 ? `${Number(seconds.toPrecision(4))} s` : duration(seconds);
  }
  /// Returns the part of a time in which a device computes. Passes of one device may overlap.
  function busy_share(spans, begin, end) {
    let busy = 0, until = begin;
    for (const [, , from, to] of spans.slice().sort((a, b) => a[2] - b[2])) {
      busy += Math.max(0, to - Math.max(from, until));
      until = Math.max(until, to);
    }
    return end > begin ? busy / (end - begin) : undefined;
  }

  /// Returns a box for a timeline, which stays when another timeline is drawn there.
  function box_of() {
    const slider = make("input", {type: "range", min: 0, max: 100, value: 100, "aria-label": "part of the timeline"});
    const box = make("div", {class: "timeline"}, make("h3", {}, "Devices in the last rounds"), draw("svg", {role: "img", "aria-label": "timeline"}),
                     slider, make("div", {class: "names"}));
    slider.addEventListener("input", () => box.draw && box.draw());
    return box;
  }

  /// Draws `line`, which has the number of devices, and spans as lists of device, action, begin and end.
  function show(box, line) {
    box.hidden = !line || !line.spans.length;
    if (box.hidden) return;
    const rows = Math.min(line.devices, most_rows);
    const of_device = Array.from({length: rows}, (_, device) => line.spans.filter((span) => span[0] === device));
    const begin = Math.min(...line.spans.map((span) => span[2])), end = Math.max(...line.spans.map((span) => span[3]));
    const used = new Set(line.spans.map((span) => span[1].replace(/[^A-Z]/g, "")));
    box.draw = () => {
      const svg = box.querySelector("svg"), slider = box.querySelector("input");
      const height = top + rows * (row + gap) + bottom;
      svg.style.height = `${height}px`;
      const width = svg.clientWidth || 400, plot = width - left - right;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.replaceChildren();
      const most = Math.max(...of_device.map((spans) => spans.length));
      const shown = Math.min(1, plot / least_pixels / most) * (end - begin);
      slider.hidden = shown >= end - begin;
      const from = begin + (slider.hidden ? 0 : slider.value / 100) * (end - begin - shown);
      const to_x = (time) => left + Math.min(Math.max((time - from) / shown, 0), 1) * plot;
      of_device.forEach((spans, device) => {
        const y = top + device * (row + gap);
        svg.append(draw("text", {x: left - 6, y: y + 14, "text-anchor": "end"}, `device ${device}`));
        svg.append(draw("rect", {class: "waits", x: left, y, width: plot, height: row}));
        for (const [, action, start, stop] of spans) {
          if (stop < from || start > from + shown) continue;
          const [x, till] = [to_x(start), to_x(stop)];
          const kind = kinds[action.replace(/[^A-Z]/g, "")] || [action, "update"];
          const rect = draw("rect", {class: "pass " + kind[1], x, y, width: Math.max(till - x, 0.5), height: row});
          rect.append(draw("title", {}, `${action}: ${kind[0]}, ${moment(stop - start)}`));
          svg.append(rect);
          const batch = action.match(/\d+$/)?.[0];
          if (batch && till - x > 7 + 6 * batch.length)
            svg.append(draw("text", {class: "pass", x: (x + till) / 2, y: y + 14, "text-anchor": "middle"}, batch));
        }
        svg.append(draw("text", {x: width - right + 6, y: y + 14}, share(busy_share(spans, begin, end))));
      });
      for (const time of charts.ticks(from - begin, from - begin + shown, Math.max(3, Math.floor(width / 110))))
        svg.append(draw("text", {x: to_x(begin + time), y: height - 6, "text-anchor": "middle"}, moment(time)));
    };
    const legend = [...Object.entries(kinds)].filter(([letter]) => used.has(letter)).map(([, kind]) => kind);
    legend.push(["waits", "waits"]);
    box.querySelector(".names").replaceChildren(...legend.map(([text, kind]) =>
      make("span", {}, make("span", {class: "swatch " + kind}), text)), make("span", {class: "faint"},
      "on the right: the share of time in which the device computes" + (line.devices > rows ? `; the first ${rows} of ${line.devices} devices` : "")));
    box.draw();
  }

  return {box_of, show};
})();
