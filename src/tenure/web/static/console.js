/* What pages do beside showing: they renew themselves when something changes, squares are walked by arrow keys, series
   are drawn, and the time line is scrubbed. Without it every page still shows what it has to show. */
"use strict";

const wait = 2000; // ms between two renewals of a page
const again = 5000; // ms after which a stream of changes that was refused is asked for again

/* -- changes ------------------------------------------------------------------------------------------------------ */

function follow() {
  if (document.body.dataset.live !== "yes" || !window.EventSource) return;
  const state = document.getElementById("live-state");
  let last = 0, due = null, known = null, stream = null;
  const renew = () => {
    due = null;
    last = Date.now();
    if (!document.hidden) htmx.trigger(document.body, "tenure-change");
  };
  const told = (event) => { // at the beginning of each stream, too: what changed between two is not missed
    const version = JSON.parse(event.data).version;
    const changed = known !== null && version !== known;
    known = version;
    if (changed && due === null) due = setTimeout(renew, Math.max(0, last + wait - Date.now()) + Math.random() * 300);
  };
  const listen = () => {
    stream = new EventSource("/changes");
    stream.addEventListener("version", told);
    stream.addEventListener("change", told);
    stream.onopen = () => state && state.classList.remove("lost");
    stream.onerror = () => {
      if (state) state.classList.add("lost");
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, again); // it was refused; browsers give up then
    };
  };
  listen();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) renew(); });
  window.addEventListener("pagehide", () => stream.close());
}

/* Whoever reads with the keyboard keeps their place when a part of the page is renewed. */
document.addEventListener("htmx:beforeSwap", (event) => {
  const at = document.activeElement;
  if (at && event.detail.target && event.detail.target.contains(at) && at.href) event.detail.target.dataset.focus = at.getAttribute("href");
});
document.addEventListener("htmx:afterSettle", (event) => {
  ready(event.target instanceof Element ? event.target : document);
});

/* -- squares ------------------------------------------------------------------------------------------------------ */

function walk(event) {
  const group = event.target.closest("[data-rove]");
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: null, ArrowUp: null, Home: "first", End: "last" };
  if (!group || !(event.key in steps)) return;
  const all = [...group.querySelectorAll("a")];
  const at = all.indexOf(event.target);
  if (at < 0) return;
  const across = all.findIndex((one, index) => index && one.offsetTop > all[0].offsetTop);
  const row = across > 0 ? across : all.length;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + row, ArrowUp: at - row, Home: 0, End: all.length - 1 }[event.key];
  if (to < 0 || to >= all.length) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus();
}
document.addEventListener("keydown", walk);

/* -- forms that show at once what is chosen ------------------------------------------------------------------------ */

document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto]");
  if (form && event.target.tagName === "SELECT") form.requestSubmit();
});
let typed = null;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-auto]");
  if (!form || event.target.type !== "search" || !document.getElementById("list")) return;
  clearTimeout(typed);
  typed = setTimeout(() => {
    const address = location.pathname + "?" + new URLSearchParams([...new FormData(form)].filter((pair) => pair[1]));
    htmx.ajax("GET", address, { target: "#list", select: "#list", swap: "outerHTML" });
    history.replaceState(null, "", address);
  }, 250);
});
document.addEventListener("submit", (event) => {
  for (const field of event.target.elements) if (field.name && field.value === "" && event.target.method === "get") field.disabled = true;
});
window.addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form [disabled]")) field.disabled = false;
});

/* -- series -------------------------------------------------------------------------------------------------------- */

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

async function draw(area) {
  area.dataset.drawn = "yes";
  const answer = await fetch(area.dataset.series);
  if (!answer.ok) return;
  const found = await answer.json();
  const only = area.dataset.only;
  let names = Object.keys(found.queues).filter((name) => !only || name === only);
  if (!found.moments.length || !names.length) {
    area.textContent = "Nothing is known of the past.";
    area.classList.add("soft");
    return;
  }
  const order = Object.keys(found.queues).sort();
  const unit = found.resource === "nvidia.com/gpu" || found.resource === "cpu" ? 1000 : 1;
  const times = found.moments.map((text) => Date.parse(text) / 1000);
  const sums = times.map(() => 0);
  const layers = [];
  for (const name of names.slice().sort()) {
    found.queues[name].forEach((value, index) => { sums[index] += value / unit; });
    layers.push({ name: name, values: sums.slice() });
  }
  layers.reverse();
  const capacity = Object.values(found.capacity)[0];
  const top = found.resource === "nvidia.com/gpu" ? (capacity || 0) : (capacity || 0) / unit;
  const series = [{}].concat(layers.map((layer) => {
    const shade = color("--c" + Math.min(order.indexOf(layer.name), 7));
    return { label: layer.name, fill: shade, stroke: shade, width: 1, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) };
  }));
  const axis = { stroke: color("--soft"), grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false } };
  const span = times[times.length - 1] - times[0];
  const clock = (second) => {
    const [date, time] = new Date(second * 1000).toISOString().split("T");
    return span > 3 * 86400 && time.startsWith("00:00") ? date.slice(5) : time.slice(0, 5);
  };
  const plot = new uPlot({
    width: area.clientWidth, height: area.classList.contains("tall") ? 240 : 190, series: series, tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
    axes: [Object.assign({ size: 30, values: (u, all) => all.map(clock) }, axis), Object.assign({ size: 56 }, axis)], legend: { show: false }, cursor: { y: false, points: { show: false } },
    scales: { y: { range: (u, low, high) => [0, Math.max(only ? high * 1.05 : top, high, 1)] } },
    hooks: { ready: [(u) => mark(u, area)] },
  }, [times].concat(layers.map((layer) => layer.values)), area);
  new ResizeObserver(() => plot.setSize({ width: area.clientWidth, height: plot.height })).observe(area);
}

/* A click on the series shows the cluster at that moment. */
function mark(plot, area) {
  const range = document.getElementById("moment-range");
  if (!range || area.dataset.only) return;
  plot.over.addEventListener("click", () => {
    const at = plot.posToVal(plot.cursor.left, "x");
    if (Number.isFinite(at)) { range.value = Math.round(at); show(Number(range.value)); }
  });
}

/* -- the time line ------------------------------------------------------------------------------------------------- */

let shown = null, playing = null;

function show(second) {
  const at = new Date(second * 1000).toISOString().replace(".000Z", "Z");
  const range = document.getElementById("moment-range");
  const text = document.getElementById("moment-at");
  text.value = at;
  range.setAttribute("aria-valuetext", at);
  clearTimeout(shown);
  shown = setTimeout(() => {
    const address = "/timeline?at=" + encodeURIComponent(at);
    history.replaceState(null, "", address);
    htmx.ajax("GET", address, { target: "#moment", select: "#moment", swap: "outerHTML" });
  }, 120);
}

function scrub() {
  const range = document.getElementById("moment-range"), play = document.getElementById("play");
  if (!range || range.dataset.ready) return;
  range.dataset.ready = "yes";
  range.addEventListener("input", () => show(Number(range.value)));
  play.hidden = false;
  play.addEventListener("click", () => {
    if (playing) { clearInterval(playing); playing = null; play.textContent = "Play"; return; }
    play.textContent = "Stop";
    const low = Number(range.min), high = Number(range.max), step = Math.max(1, Math.round((high - low) / 60));
    if (Number(range.value) >= high) range.value = low;
    playing = setInterval(() => {
      const next = Math.min(high, Number(range.value) + step);
      range.value = next;
      show(next);
      if (next >= high) play.click();
    }, 700);
  });
}

function ready(part) {
  for (const area of part.querySelectorAll("[data-series]:not([data-drawn])")) draw(area);
  scrub();
  const kept = document.querySelector("[data-focus]");
  if (kept) {
    const link = kept.querySelector("a[href='" + CSS.escape(kept.dataset.focus) + "']");
    if (link) link.focus({ preventScroll: true });
    delete kept.dataset.focus;
  }
}

document.addEventListener("DOMContentLoaded", () => { ready(document); follow(); });
