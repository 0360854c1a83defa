// Elements of the page, and numbers as people read them.
"use strict";
const texts = (() => {
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
  /// Returns a loss with four decimals, as on terminals, so that those of a column stand below each other.
  function loss(value) {
    if (!is_number(value)) return "–";
    const size = Math.abs(value);
    return size >= 0.01 && size < 1000 ? value.toFixed(4) : number(value);
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

  return {at, make, draw, cell, table, is_number, count, number, loss, share, bytes, duration, clock};
})();
