// Functions that all pages share.  Content of results is inserted as text and never parsed as HTML.
// A page on disk reads its data from files beside it; a served page requests it from the server.
"use strict";

const main = document.getElementById("main");
const question = document.getElementById("question");
let overview = [];
let unread = ""; // problems of results that could not be read
let tasks = [];
let leave = () => {}; // ends the current page
let visit = 0; // number of pages requested so far: a late response draws no page that was left

async function ask(name, of = "", how = {}) {
  if (window.STEPGRAPH) return onDisk[name](of);
  const answer = await fetch(`${name}?of=${encodeURIComponent(of)}`, how).catch(() => {
    throw new Error("No response: stepgraph view was stopped. Start it again and open the address that it prints.");
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found?.error ?? `not found: ${of}`);
  return found;
}

// --- On disk: results are in parts, which are loaded as scripts, since browsers allow nothing else

const loaded = new Map();
const loading = new Map();
if (window.STEPGRAPH) window.STEPGRAPH.results = (some) => Object.entries(some).forEach((one) => loaded.set(...one));

function loadPart(number) {
  if (!loading.has(number)) {
    const script = document.createElement("script");
    const done = new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = () => reject(new Error(`data/${number}.js is missing in the folder of this page.`));
    });
    script.src = `data/${number}.js`;
    document.head.append(script);
    loading.set(number, done);
  }
  return loading.get(number);
}

const onDisk = {
  overview: () => ({ videos: window.STEPGRAPH.videos, tasks: window.STEPGRAPH.tasks }),
  map: (task) => window.STEPGRAPH.maps[task],
  result: async (id) => {
    await loadPart(videoOf(id).part);
    return loaded.get(id);
  },
  search: async (words) => {
    const wanted = words.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
    const shared = (text) => wanted.filter((word) => text.toLowerCase().includes(word)).length / wanted.length;
    const found = new Map(); // best sentence of each step
    for (let part = 0; part < window.STEPGRAPH.parts; part += 1) await loadPart(part);
    for (const video of overview) {
      for (const [start, end, text] of loaded.get(video.id).transcript) {
        const step = video.steps.find(([from, to]) => from <= start && start < to);
        const score = (shared(text) + shared(step?.[2] ?? "")) / 2;
        const place = step ?? `${start} ${video.id}`;
        if (score > (found.get(place)?.score ?? 0)) found.set(place, { video: video.id, start, end, text, score, keystep: step?.[2] ?? null });
      }
    }
    return [...found.values()].sort((one, other) => other.score - one.score).slice(0, 30);
  },
};

// --- Elements

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "step") colour(element, value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const button = (text, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, text);

function show(title, ...children) {
  document.title = title ? `${title} – stepgraph` : "stepgraph";
  main.replaceChildren(...children.flat().filter((child) => child !== null));
}

// --- Words and colours

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function clock(seconds) {
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
}

const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`);

// A step has the same colour, hue and lightness, everywhere.
const colours = new Map();
function colour(element, keystep) {
  giveColours([keystep]);
  const [hue, light] = colours.get(keystep);
  element.style.setProperty("--hue", hue);
  element.style.setProperty("--light", light);
}

// Give each new step the colour, of a few dozen, that differs most from those of the other steps.
function giveColours(keysteps) {
  const own = keysteps.flatMap((one) => (colours.has(one) ? [colours.get(one)] : []));
  const apart = ([hue, light], [other, its]) => Math.abs(((hue - other + 540) % 360) - 180) - (light === its ? 15 : 0);
  for (const keystep of keysteps.filter((one) => !colours.has(one))) {
    const others = own.slice(-40);
    let [best, most] = [null, -Infinity];
    for (let number = colours.size; number < colours.size + 36; number += 1) {
      const one = [Math.round(number * 137.508) % 360, [0.7, 0.6, 0.78][number % 3]];
      const least = Math.min(180, ...others.map((other) => apart(one, other)));
      if (least > most) [best, most] = [one, least];
    }
    own.push(best);
    colours.set(keystep, best);
  }
}

const dot = (keystep) => make("span", { class: "dot", step: keystep });

// Show a probability as a number and a bar.
function sureness(share, label = "confidence") {
  if (share === null || share === undefined) return make("span", { class: "sure quiet" }, "–");
  const bar = make("i", {});
  bar.style.setProperty("--share", share);
  return make("span", { class: "sure", title: `${label} ${percent(share)}` }, bar, percent(share));
}

// --- Videos

const byId = new Map();
const videoOf = (id) => {
  const found = byId.get(id);
  if (!found) throw new Error(`There is no video ${id}.`);
  return found;
};
const taskOf = (video) => video.task ?? "all videos";
const part = (text) => encodeURIComponent(text);
const addressOf = (id, time) => `#video/${part(id)}${time === undefined ? "" : `@${time.toFixed(1)}`}`;

function keepOverview(found) {
  overview = found.videos;
  unread = found.problems ?? "";
  tasks = found.tasks;
  byId.clear();
  for (const video of overview) byId.set(video.id, video);
  const named = new Map(); // the steps of each task
  for (const video of overview) {
    if (!named.has(taskOf(video))) named.set(taskOf(video), new Set());
    for (const step of video.steps) named.get(taskOf(video)).add(step[2]);
  }
  for (const own of named.values()) giveColours([...own]);
}

function pictureOf(video, at) {
  if (!video.pictures || !video.steps[at]) return null;
  if (window.STEPGRAPH) return video.thumbs?.[at] ?? null;
  return `picture/${part(video.id)}?of=${video.steps[at][0].toFixed(1)}`;
}

function thumb(video, at) {
  const src = pictureOf(video, at);
  // The name is beside it as text, so the picture needs no description.
  return src ? make("img", { class: "thumb", src, alt: "", loading: "lazy", decoding: "async" }) : null;
}

// Parts of a bar for the steps of a video.  Steps that share a pixel are drawn once; a bar that is
// zoomed in shows more of them.
function segments(video, spread = 1) {
  const parts = [];
  let drawn = -1;
  for (const [start, end, keystep] of video.steps) {
    const [left, right] = [(100 * start) / video.duration, (100 * end) / video.duration];
    if (right - drawn < 0.1 / spread) continue;
    // A step of two pixels has no room for a separating line.
    const piece = make("i", { step: keystep, class: right - left < 0.4 / spread ? "thin" : null });
    piece.style.left = `${left}%`;
    piece.style.width = `${right - left}%`;
    parts.push(piece);
    drawn = right;
  }
  return parts;
}

function strip(video) {
  return peekable(make("div", { class: "strip", "aria-hidden": "true" }, ...segments(video)), video);
}

// Show the step under the pointer, with its picture.
const peek = document.getElementById("peek");
function peekable(bar, video) {
  let shown = -1;
  bar.addEventListener("pointermove", (event) => {
    const box = bar.getBoundingClientRect();
    const time = ((event.clientX - box.left) / box.width) * video.duration;
    const at = video.steps.findIndex(([start, end]) => start <= time && time < end);
    if (at !== shown) {
      const what = at < 0 ? "no step" : video.steps[at][2];
      const when = at < 0 ? clock(Math.max(0, time)) : video.steps[at].slice(0, 2).map(clock).join(" – ");
      const lines = [make("b", {}, what), make("span", { class: "time" }, when)];
      peek.replaceChildren(...[thumb(video, at), ...lines].filter(Boolean));
      shown = at;
    }
    peek.hidden = false;
    const wide = peek.offsetWidth;
    const below = box.bottom + 8 + peek.offsetHeight < window.innerHeight;
    peek.style.left = `${Math.max(8, Math.min(event.clientX - wide / 2, document.documentElement.clientWidth - wide - 8))}px`;
    peek.style.top = `${below ? box.bottom + 8 : box.top - 8 - peek.offsetHeight}px`;
  });
  bar.addEventListener("pointerleave", () => {
    peek.hidden = true;
    shown = -1;
  });
  return bar;
}
