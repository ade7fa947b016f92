// The page of results: an overview, a video with its steps, and what a search found.
// Everything from results is put in as text; nothing is ever parsed as HTML.  A page on disk has
// all of it in data.js and searches by words; one that is served asks for it.
"use strict";

const main = document.getElementById("main");
const question = document.getElementById("question");
let overview = [];
let sorted = { by: "id", down: false };
let filter = "";
let leave = () => {};
let correcting = false;
const undoable = new Map(); // of each video, what its steps were before

async function ask(name, of = "") {
  if (window.STEPGRAPH) return onDisk[name](of);
  const answer = await fetch(`${name}?of=${encodeURIComponent(of)}`);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found?.error ?? `not found: ${of}`);
  return found;
}

async function correct(id, steps) {
  const answer = await fetch(`correct?of=${encodeURIComponent(id)}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(steps),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error ?? "It could not be kept.");
  overview[overview.findIndex((one) => one.id === id)] = found;
}

const onDisk = {
  overview: () => window.STEPGRAPH.overview,
  result: (id) => window.STEPGRAPH.results[id],
  search: (words) => {
    const wanted = words.toLowerCase().split(/\W+/).filter(Boolean);
    const found = [];
    for (const video of overview) {
      for (const [start, end, text] of window.STEPGRAPH.results[video.id].transcript) {
        const step = video.steps.find(([from, to]) => from <= start && start < to);
        const all = `${text} ${step?.[2] ?? ""}`.toLowerCase();
        const score = wanted.filter((word) => all.includes(word)).length / wanted.length;
        if (score > 0) found.push({ video: video.id, start, end, text, score, keystep: step?.[2] ?? null });
      }
    }
    return found.sort((one, other) => other.score - one.score).slice(0, 30);
  },
};

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "hue") element.style.setProperty("--hue", value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
}

const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`);

// The same step has the same colour everywhere; neighbours on the wheel are far apart.
const hues = new Map();
function hue(keystep) {
  if (!hues.has(keystep)) hues.set(keystep, Math.round(hues.size * 137.508) % 360);
  return hues.get(keystep);
}

function addressOf(id, time) {
  return `#video/${encodeURIComponent(id)}${time === undefined ? "" : `@${time.toFixed(1)}`}`;
}

// --- Overview

const COLUMNS = [
  ["id", "video"],
  ["task", "task"],
  ["duration", "length"],
  ["count", "steps"],
  ["covered", "covered"],
  ["sure", "sure"],
];

function strip(video) {
  const bar = make("div", { class: "strip", "aria-hidden": "true" });
  for (const [start, end, keystep] of video.steps) {
    const part = make("i", { hue: hue(keystep), title: keystep });
    part.style.left = `${(100 * start) / video.duration}%`;
    part.style.width = `${(100 * (end - start)) / video.duration}%`;
    bar.append(part);
  }
  return bar;
}

function line(video) {
  const task = video.task === null ? "–" : `${video.task} (${percent(video.share)})`;
  return make(
    "a",
    { class: "row", href: addressOf(video.id) },
    make("span", { class: "cut", title: video.id }, video.id),
    make("span", { class: "cut quiet", title: task }, task),
    make("span", { class: "number" }, clock(video.duration)),
    make("span", { class: "number" }, String(video.steps.length)),
    make("span", { class: "number" }, percent(video.covered)),
    make("span", { class: "number" }, percent(video.sure)),
    strip(video),
  );
}

function chosen() {
  const wanted = filter.toLowerCase();
  const holds = (video) =>
    [video.id, video.task ?? "", ...video.steps.map((step) => step[2])].some((text) =>
      text.toLowerCase().includes(wanted),
    );
  const value = (video) => (sorted.by === "count" ? video.steps.length : video[sorted.by]);
  const found = wanted ? overview.filter(holds) : [...overview];
  found.sort((one, other) => {
    const [a, b] = [value(one) ?? "", value(other) ?? ""];
    return (a < b ? -1 : a > b ? 1 : 0) * (sorted.down ? -1 : 1);
  });
  return found;
}

function showOverview() {
  document.title = "stepgraph";
  const list = make("div", { class: "list" });
  const count = make("span", { class: "quiet", "aria-live": "polite" });
  let shown = [];
  const draw = () => {
    // Only the lines that can be seen exist, so that thousands of videos scroll smoothly.
    const height = window.matchMedia("(max-width: 52rem)").matches ? 60 : 44;
    list.style.height = `${shown.length * height}px`;
    const top = Math.max(0, -list.getBoundingClientRect().top);
    const first = Math.max(0, Math.floor(top / height) - 10);
    const last = Math.min(shown.length, first + Math.ceil(window.innerHeight / height) + 20);
    const focused = document.activeElement?.getAttribute("href");
    list.replaceChildren(
      ...shown.slice(first, last).map((video, at) => {
        const row = line(video);
        row.style.top = `${(first + at) * height}px`;
        return row;
      }),
    );
    if (focused) list.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };
  const renew = () => {
    shown = chosen();
    count.textContent = `${shown.length} of ${overview.length} videos`;
    for (const head of heads.children) {
      head.setAttribute("aria-pressed", String(head.dataset.by === sorted.by));
    }
    draw();
  };
  const heads = make("div", { class: "row heads", role: "group", "aria-label": "sort by" });
  for (const [by, name] of COLUMNS) {
    const sort = () => {
      sorted = { by, down: sorted.by === by ? !sorted.down : false };
      renew();
    };
    heads.append(make("button", { "data-by": by, type: "button", onclick: sort }, name));
  }
  const field = make("input", {
    type: "search",
    placeholder: "Filter by name, task or step",
    "aria-label": "Filter",
    value: filter,
    oninput: (event) => {
      filter = event.target.value;
      renew();
    },
  });
  const first = () => {
    sorted = { by: "sure", down: false };
    renew();
  };
  const check = make("button", { type: "button", onclick: first }, "What to check first");
  main.replaceChildren(make("div", { class: "tools" }, field, check, count), heads, list);
  window.addEventListener("scroll", draw);
  window.addEventListener("resize", draw);
  leave = () => {
    window.removeEventListener("scroll", draw);
    window.removeEventListener("resize", draw);
  };
  renew();
}

// --- One video

async function showVideo(id, time) {
  leave();
  const video = overview.find((one) => one.id === id);
  if (!video) throw new Error(`There is no video ${id}.`);
  const more = await ask("result", id);
  document.title = `${id} – stepgraph`;
  const player = video.plays
    ? make("video", { controls: "", preload: "metadata", src: video.src ?? `media/${encodeURIComponent(id)}` })
    : null;
  let now = time ?? 0;
  let ready = false; // before its length is known, a player stands at 0 wherever it is sent
  const jump = (to) => {
    now = Math.min(Math.max(0, to), video.duration);
    if (player) player.currentTime = now;
    follow();
  };
  const track = make("div", { class: "track" });
  const needle = make("div", { class: "needle" });
  const marks = video.steps.map(([start, end, keystep], at) => {
    const label = `${at + 1}: ${keystep}, ${clock(start)} to ${clock(end)}`;
    const mark = make("button", { type: "button", hue: hue(keystep), title: label, "aria-label": label });
    mark.addEventListener("click", () => jump(start));
    mark.style.left = `${(100 * start) / video.duration}%`;
    mark.style.width = `${(100 * (end - start)) / video.duration}%`;
    return mark;
  });
  track.append(...marks, needle);
  const steps = video.steps.map(([start, , keystep, sure], at) => {
    const words = more.chapters[at]?.words;
    return make(
      "button",
      { type: "button", onclick: () => jump(start) },
      make("span", { class: "dot", hue: hue(keystep) }),
      make("span", { class: "time" }, clock(start)),
      make("span", {}, keystep, words ? make("span", { class: "words" }, `“${words}”`) : null),
      make("span", { class: "quiet" }, percent(sure)),
    );
  });
  const plain = video.steps.map(([start, end, keystep]) => [start, end, keystep]);
  const keep = async (next) => {
    await correct(id, next);
    await showVideo(id, now);
  };
  const change = (next) => {
    undoable.set(id, [...(undoable.get(id) ?? []), video.corrected ? plain : null]);
    return keep(next).catch((error) => main.prepend(make("p", { role: "alert" }, error.message)));
  };
  const undo = () => {
    const before = undoable.get(id);
    if (before?.length) keep(before.pop());
  };
  const at = () => Math.round(10 * now) / 10;
  const add = () => change([...plain, [at(), Math.min(at() + 10, video.duration), "new step"]]);
  const toggle = () => {
    correcting = !correcting;
    showVideo(id, now);
  };
  const tools = make("div", { class: "tools" });
  if (!window.STEPGRAPH) {
    tools.append(make("button", { type: "button", "aria-pressed": String(correcting), onclick: toggle }, "Correct"));
    if (correcting) {
      tools.append(make("button", { type: "button", onclick: add }, "Add a step here"));
      tools.append(make("button", { type: "button", onclick: undo }, "Undo"));
    }
  }
  if (video.corrected) tools.append(make("span", { class: "quiet" }, "corrected"));
  const names = make("datalist", { id: "keysteps" }, ...[...hues.keys()].map((name) => make("option", { value: name })));
  const said = more.transcript.map(([start, , text]) =>
    make(
      "button",
      { type: "button", onclick: () => jump(start) },
      make("span", { class: "time" }, clock(start)),
      make("span", { class: "text" }, text),
    ),
  );
  const transcript = make("ul", { class: "said panel", tabindex: "0", "aria-label": "transcript" });
  transcript.append(...said.map((one) => make("li", {}, one)));
  const find = (event) => {
    const wanted = event.target.value.toLowerCase();
    said.forEach((one, at) => {
      const text = more.transcript[at][2];
      const place = wanted ? text.toLowerCase().indexOf(wanted) : -1;
      const shown = one.querySelector(".text");
      one.parentElement.hidden = Boolean(wanted) && place < 0;
      if (place < 0) return shown.replaceChildren(text);
      const end = place + wanted.length;
      shown.replaceChildren(text.slice(0, place), make("mark", {}, text.slice(place, end)), text.slice(end));
    });
  };
  let spoken = -1;
  function follow() {
    if (ready && !player.seeking) now = player.currentTime;
    needle.style.left = `${(100 * now) / video.duration}%`;
    video.steps.forEach(([start, end], at) => {
      const current = String(start <= now && now < end);
      marks[at].setAttribute("aria-current", current);
      steps[at].setAttribute("aria-current", current);
    });
    const last = more.transcript.findLastIndex(([start]) => start <= now);
    if (last === spoken) return;
    said[spoken]?.removeAttribute("aria-current");
    said[last]?.setAttribute("aria-current", "true");
    spoken = last;
    const line = said[last];
    if (line) transcript.scrollTop = line.offsetTop - transcript.offsetTop - transcript.clientHeight / 2;
  }
  const keys = (event) => {
    if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const number = Number(event.key);
    if (event.key === " " && player && !event.target.matches("button, video")) {
      if (player.paused) player.play();
      else player.pause();
    } else if (event.key === "ArrowLeft") jump(now - 5);
    else if (event.key === "ArrowRight") jump(now + 5);
    else if (number >= 1 && video.steps[number - 1]) jump(video.steps[number - 1][0]);
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", keys);
  leave = () => {
    document.removeEventListener("keydown", keys);
    player?.pause();
  };
  const tasks = Object.entries(more.tasks ?? {})
    .filter(([, share]) => share >= 0.005)
    .map(([name, share]) => `${name} ${percent(share)}`);
  main.replaceChildren(
    make("h1", {}, id),
    make("p", { class: "quiet" }, tasks.slice(0, 3).join(" · ")),
    make(
      "div",
      { class: "watch" },
      make(
        "div",
        {},
        player ?? make("p", { class: "quiet" }, "There is no video file to play; times work all the same."),
        track,
        make("p", { class: "quiet" }, "Space plays, arrows move by 5 s, 1 to 9 jump to a step."),
        make("h2", {}, "Transcript"),
        make("input", { type: "search", placeholder: "Search in it", "aria-label": "Search in the transcript", oninput: find }),
        transcript,
      ),
      make(
        "div",
        {},
        make("h2", {}, "Steps"),
        tools,
        names,
        make(
          "ul",
          { class: "steps" },
          ...steps.map((one, number) =>
            make("li", {}, one, correcting ? corrections(plain, number, at, change) : null),
          ),
        ),
      ),
    ),
  );
  if (player) {
    player.addEventListener("timeupdate", follow);
    player.addEventListener("seeked", follow);
    const begin = () => {
      ready = true;
      jump(now);
    };
    player.addEventListener("loadedmetadata", begin, { once: true });
  }
  follow();
}

// Buttons that correct one step; each gives all steps as they are then.
function corrections(steps, at, now, change) {
  const [start, end, name] = steps[at];
  const put = (...new_) => change([...steps.slice(0, at), ...new_, ...steps.slice(at + 1)]);
  const field = make("input", { list: "keysteps", value: name, "aria-label": `name of step ${at + 1}` });
  field.addEventListener("change", () => field.value.trim() && put([start, end, field.value.trim()]));
  const inside = () => start < now() && now() < end;
  const row = make("span", { class: "correct" }, field);
  for (const [text, can, to] of [
    ["starts here", () => now() < end, () => put([now(), end, name])],
    ["ends here", () => now() > start, () => put([start, now(), name])],
    ["split here", inside, () => put([start, now(), name], [now(), end, name])],
    [
      "join with next",
      () => at + 1 < steps.length,
      () => change([...steps.slice(0, at), [start, steps[at + 1][1], name], ...steps.slice(at + 2)]),
    ],
    ["delete", () => true, () => put()],
  ]) {
    row.append(make("button", { type: "button", onclick: () => can() && to() }, text));
  }
  return row;
}

// --- Search

async function showFound(words) {
  document.title = `${words} – stepgraph`;
  main.replaceChildren(make("p", { class: "quiet" }, "Searching …"));
  const moments = await ask("search", words);
  const groups = new Map();
  for (const moment of moments) {
    const name = moment.keystep ?? "said where no step is done";
    groups.set(name, [...(groups.get(name) ?? []), moment]);
  }
  const shown = [...groups].map(([name, found]) => [
    make("h2", {}, name),
    make(
      "ul",
      { class: "moments" },
      ...found.map((moment) =>
        make(
          "li",
          {},
          make(
            "a",
            { href: addressOf(moment.video, moment.start) },
            make("span", { class: "dot", hue: hue(name) }),
            make("span", { class: "time" }, clock(moment.start)),
            make("span", {}, moment.video, make("span", { class: "words" }, `“${moment.text}”`)),
            make("span", { class: "quiet" }, moment.score.toFixed(2)),
          ),
        ),
      ),
    ),
  ]);
  const none = make("p", { class: "quiet" }, "Nothing was found.");
  main.replaceChildren(make("h1", {}, words), ...(shown.length ? shown.flat() : [none]));
}

// --- The way through it

async function route() {
  leave();
  leave = () => {};
  const [kind, ...rest] = location.hash.slice(1).split("/");
  const of = rest.join("/");
  try {
    if (kind === "video") {
      const [id, time] = of.split("@");
      await showVideo(decodeURIComponent(id), time === undefined ? undefined : Number(time));
    } else if (kind === "search") {
      question.value = decodeURIComponent(of);
      await showFound(question.value);
    } else showOverview();
  } catch (error) {
    main.replaceChildren(make("p", { role: "alert" }, error.message));
  }
}

document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (question.value.trim()) location.hash = `search/${encodeURIComponent(question.value.trim())}`;
});
window.addEventListener("hashchange", route);
ask("overview").then((found) => {
  overview = found;
  for (const video of overview) for (const step of video.steps) hue(step[2]);
  return route();
});
