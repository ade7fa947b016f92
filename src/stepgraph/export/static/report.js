"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SHOWN = 4; // videos of a task before "show all"
  const LEGEND = 12; // keysteps of a legend before "more"
  const SVG = "http://www.w3.org/2000/svg";

  /* Text enters the page as text nodes and attributes only, never as markup. */
  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
    return node;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const byId = (id) => document.getElementById(id);
  const percent = (share, digits) => (share === null ? "–" : (100 * share).toFixed(digits));
  const clock = (seconds) => {
    const whole = Math.floor(seconds), rest = String(whole % 60).padStart(2, "0");
    return whole < 3600
      ? `${Math.floor(whole / 60)}:${rest}`
      : `${Math.floor(whole / 3600)}:${String(Math.floor(whole / 60) % 60).padStart(2, "0")}:${rest}`;
  };
  const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  const swatch = (keystep) => el("span", { class: "swatch", style: `background:${data.colours[keystep]}` });

  const root = document.documentElement;
  try { if (localStorage.theme) root.dataset.theme = localStorage.theme; } catch { /* storage is optional */ }
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.theme = root.dataset.theme; } catch { /* as above */ }
  });

  const anyFilled = data.videos.some((video) => video.tracks.some((track) => track && track.some((kind, at) => at % 4 === 3 && !kind)));
  const anyFilm = data.videos.some((video) => video.src);
  const anyOther = data.videos.some((video) => data.tasks[video.task]);
  function drawKey() {
    const colour = data.colours[0] || "#888";
    const item = (text, ...marks) => el("li", {}, svg("svg", { viewBox: "0 0 44 16", "aria-hidden": "true" }, marks), text);
    const bar = (attributes) => svg("rect", { x: 8, y: 0, width: 28, height: 16, fill: colour, ...attributes });
    const tick = (x) => svg("line", { x1: x, x2: x, y1: 5, y2: 12, stroke: "currentColor" });
    const items = [
      anyFilled && item("confident match (anchor)", bar()),
      anyFilled && item("inferred from the rows around it (path)", bar({ "fill-opacity": 0.5 })),
      anyOther && item("thin: keystep of another task", bar({ y: 5, height: 6 })),
      data.videos.some((video) => video.cues.length) && item("start of a sentence", [6, 13, 16, 25, 31, 38].map(tick)),
    ].filter(Boolean);
    if (items.length) byId("key").append(el("ul", {}, items));
    if (anyFilm) {
      byId("key").append(el("p", { class: "hint" }, "Videos play beside their timelines. Click a timeline to jump to that time. When a timeline has focus, space plays and the arrow keys move."));
    }
  }

  const last = data.methods.length - 1;
  const accuracy = (video, method) => (video.rows && video.hits[method] !== null && method >= 0 ? video.hits[method] / video.rows : null);
  const gain = (video) => {
    const before = accuracy(video, 0), after = accuracy(video, last);
    return last > 0 && before !== null && after !== null ? after - before : null;
  };
  const pooled = (videos, method) => {
    const judged = videos.filter((video) => accuracy(video, method) !== null);
    const rows = judged.reduce((sum, video) => sum + video.rows, 0);
    return rows ? judged.reduce((sum, video) => sum + video.hits[method], 0) / rows : null;
  };
  const signed = (share) => `${share < 0 ? "−" : "+"}${Math.abs(100 * share).toFixed(1)}`;

  const low = (value) => (value === null ? -9 : value); // missing values go last
  const sorts = {};
  if (data.videos.some((video) => gain(video) !== null)) {
    const what = `${data.methods[last]} over ${data.methods[0]}`;
    sorts[`largest gain of ${what}`] = (a, b) => low(gain(b)) - low(gain(a));
    sorts[`largest loss of ${what}`] = (a, b) => low(gain(b) === null ? null : -gain(b)) - low(gain(a) === null ? null : -gain(a));
  } else if (data.videos.some((video) => accuracy(video, last) !== null)) {
    sorts[`accuracy of ${data.methods[last]}`] = (a, b) => low(accuracy(b, last)) - low(accuracy(a, last));
  }
  sorts["as in the dataset"] = () => 0;
  sorts["longest first"] = (a, b) => b.duration - a.duration;

  function trackPaths(track, members) {
    const paths = new Map();
    for (let at = 0; at < track.length; at += 4) {
      const [start, end, keystep, kind] = track.slice(at, at + 4);
      const thin = members && !members.has(keystep);
      const key = `${keystep} ${kind}`;
      const [top, bottom] = thin ? [0.3, 0.7] : [0, 1];
      const box = `M${start} ${top}H${end}V${bottom}H${start}Z`;
      paths.set(key, (paths.get(key) || "") + box);
    }
    return [...paths].map(([key, d]) => {
      const [keystep, kind] = key.split(" ");
      return svg("path", { d, fill: data.colours[keystep], class: kind === "1" ? "run" : "run filled", "data-k": keystep });
    });
  }
  // Sentences at the anchors of the segment at this time.
  function anchorsAt(video, track, time) {
    let at = 0;
    while (at < track.length && !(track[at] <= time && time < track[at + 1])) at += 4;
    if (at >= track.length) return "";
    let first = at, last = at;
    const joins = (a, b) => track[a + 1] === track[b] && track[a + 2] === track[b + 2];
    while (first >= 4 && joins(first - 4, first)) first -= 4;
    while (last + 4 < track.length && joins(last, last + 4)) last += 4;
    const sentences = new Set();
    for (let one = first; one <= last; one += 4) {
      if (!track[one + 3]) continue;
      for (const cue of video.cues) if (cue[0] < track[one + 1] && cue[1] > track[one]) sentences.add(cue[2]);
    }
    return [...sentences].slice(0, 3).join(" … ");
  }
  function sureAt(sure, time) {
    for (let at = 0; sure && at < sure.length; at += 2) if (time < sure[at]) return `confidence ${sure[at + 1]}\u00a0%`;
    return "";
  }
  function keystepAt(track, time) {
    for (let at = 0; at < track.length; at += 4) if (track[at] <= time && time < track[at + 1]) return track[at + 2];
    return null;
  }
  function tickStep(duration) {
    return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600].find((step) => duration / step <= 10) || 7200;
  }
  /* The time to show first: of a sentence that matches the search, else where the last method gains. */
  function firstTime(video, terms) {
    const cue = terms.length && video.cues.find((one) => terms.some((term) => one[2].toLowerCase().includes(term)));
    if (cue) return cue[0];
    const [truth, first, best] = [video.tracks[0], video.tracks[1], video.tracks[last + 1]];
    const found = [0, 0, 0];
    for (let at = 0; truth && at < truth.length; at += 4) {
      const middle = (truth[at] + truth[at + 1]) / 2, right = truth[at + 2];
      if (!best || keystepAt(best, middle) !== right) continue;
      const better = first === best || keystepAt(first || [], middle) !== right;
      const spoken = video.cues.some((one) => one[0] <= middle && middle < one[1]);
      const rank = better ? (spoken ? 0 : 1) : 2;
      found[rank] = found[rank] || middle;
    }
    return found[0] || found[1] || found[2] || Math.min(video.duration / 2, video.cues.length ? video.cues[0][0] : Infinity);
  }
  const rowNames = ["truth", ...data.methods];
  function lane(kind, label, middle, figure) {
    return el("div", { class: `lane ${kind}` }, el("bdi", {}, label), middle, el("span", {}, figure));
  }
  function drawTracks(video, terms) {
    const members = data.tasks[video.task] && new Set(data.tasks[video.task]);
    const length = video.duration || 1;
    const view = { viewBox: `0 0 ${length} 1`, preserveAspectRatio: "none", "aria-hidden": "true" };
    const lanes = video.tracks.map((track, row) => {
      if (!track) return row ? lane("", rowNames[row], el("span", { class: "quiet" }, "no labels"), "–") : null;
      const figure = row ? percent(accuracy(video, row - 1), 1) + (accuracy(video, row - 1) === null ? "" : "\u00a0%") : "";
      return lane(row ? "" : "true", rowNames[row], svg("svg", view, trackPaths(track, members)), figure);
    });
    const hit = (cue) => terms.some((term) => cue[2].toLowerCase().includes(term));
    const marks = (cues) => cues.map((cue) => `M${Math.min(cue[0], length)} 0V1`).join("");
    const speech = svg("svg", view,
      svg("path", { d: marks(video.cues.filter((cue) => !hit(cue))) }),
      svg("path", { class: "hit", d: marks(video.cues.filter(hit)) }));
    const step = tickStep(length), ticks = el("div", { class: "ticks" });
    for (let time = 0, number = 0; time < length * 0.97; time += step, number += 1) {
      ticks.append(el("span", { class: number % 2 ? "odd" : "", style: `left:${(100 * time) / length}%` }, clock(time)));
    }
    const judged = data.methods.some((_, method) => accuracy(video, method) !== null);
    if (judged) lanes.unshift(lane("heads", "", el("span"), "accuracy"));
    if (video.cues.length) lanes.push(lane("speech", "", speech, ""));
    return el("div", { class: "tracks" }, lanes, lane("axis", "", ticks, ""));
  }

  /* The crosshair: a slider over all rows of a card, moved by pointer, keys or the film. */
  function addProbe(video, tracks, readout, terms) {
    const line = el("i"), ghost = el("i", { class: "ghost", hidden: "" });
    const probe = el("div", {
      class: "probe", role: "slider", tabindex: "0", "aria-label": `time in video ${video.id}`,
      "aria-valuemin": 0, "aria-valuemax": Math.floor(video.duration),
    }, line, ghost);
    let now = 0, announced = "";
    const within = (time) => Math.max(0, Math.min(time, Math.max(0, video.duration - 0.01)));
    const place = (mark, time) => { mark.style.left = `${(100 * within(time)) / (video.duration || 1)}%`; };
    function read(time) {
      const spoken = video.cues.filter((cue) => cue[0] <= time && time < Math.max(cue[1], cue[0] + 1)).map((cue) => cue[2]).join(" ");
      const found = video.tracks.map((track, row) => [rowNames[row], track && keystepAt(track, time), track, sureAt(video.sure[row], time)]).filter((one) => one[2]);
      const chosen = video.tracks.length - 1;
      const anchored = video.sure[chosen] ? anchorsAt(video, video.tracks[chosen], time) : "";
      readout.classList.toggle("peek", time !== now);
      const done = (keystep, sure) => (keystep === null ? el("span", { class: "quiet" }, "–")
        : el("span", { class: "done" }, swatch(keystep), el("bdi", {}, data.keysteps[keystep]), sure ? el("span", { class: "quiet" }, sure) : null));
      readout.replaceChildren(
        el("time", {}, clock(time)),
        el("ul", {}, found.map(([name, keystep, , sure]) => el("li", {}, el("bdi", {}, name), done(keystep, sure)))),
        spoken ? el("q", { dir: "auto" }, spoken) : el("q", { class: "none" }, video.cues.length ? "no sentence" : "no transcript"));
      if (anchored && anchored !== spoken) readout.append(el("p", { class: "quiet" }, `${rowNames[chosen]} matched `, el("q", { dir: "auto" }, anchored)));
      const words = found.map(([name, keystep]) => `${name}: ${keystep === null ? "background" : data.keysteps[keystep]}`);
      return [...words, spoken].filter(Boolean).join("; ");
    }
    function show(time) {
      now = within(time);
      place(line, now);
      const words = read(now);
      // While a film plays, screen readers announce changes only.
      if (film && film.runs() && words === announced) return;
      announced = words;
      probe.setAttribute("aria-valuenow", Math.floor(now));
      probe.setAttribute("aria-valuetext", [clock(now), words].filter(Boolean).join("; "));
    }
    const go = (time) => { show(time); if (film) film.seek(now); };
    // The pointer previews other times; while a film plays, the readout follows the film.
    const peek = (time) => {
      ghost.hidden = time === null;
      if (time !== null) place(ghost, time);
      if (!film.runs()) read(within(time === null ? now : time));
    };
    const timeAt = (event) => {
      const box = probe.getBoundingClientRect();
      return ((event.clientX - box.left) / box.width) * video.duration;
    };
    const plays = () => film && film.works();
    // A finger that scrolls the page must not move the film: it follows sideways drags and clicks, not
    // mere touches.
    let pressed = { clientX: 0, clientY: 0 };
    const off = (event, axis) => Math.abs(event[axis] - pressed[axis]);
    const drags = (event) => event.buttons & 1 && (event.pointerType !== "touch" || off(event, "clientX") > off(event, "clientY"));
    probe.addEventListener("pointermove", (event) => {
      if (!plays() || drags(event)) go(timeAt(event));
      else if (event.pointerType !== "touch") peek(timeAt(event));
    });
    probe.addEventListener("pointerdown", (event) => {
      if (!plays()) return show(timeAt(event));
      pressed = event;
      return probe.setPointerCapture(event.pointerId);
    });
    probe.addEventListener("pointerleave", () => { if (film) peek(null); });
    probe.addEventListener("click", (event) => { if (plays()) go(timeAt(event)); });
    probe.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 10 : 1;
      const moves = {
        ArrowLeft: now - step, ArrowDown: now - step, ArrowRight: now + step, ArrowUp: now + step,
        PageDown: now - 30, PageUp: now + 30, Home: 0, End: video.duration,
      };
      if (event.key === " " && plays()) film.toggle();
      else if (event.key in moves) go(moves[event.key]);
      else return;
      event.preventDefault();
    });
    tracks.append(probe);
    const start = firstTime(video, terms);
    const film = video.src ? openFilm(el, video, start, { show, place: (time) => place(line, time) }) : null;
    show(start);
    return film;
  }

  function drawLegend(video, tracks) {
    const members = data.tasks[video.task] && new Set(data.tasks[video.task]);
    const seconds = new Map();
    video.tracks.forEach((track, row) => {
      for (let at = 0; track && at < track.length; at += 4) {
        const before = seconds.get(track[at + 2]) || [0, 0];
        before[row ? 1 : 0] += track[at + 1] - track[at];
        seconds.set(track[at + 2], before);
      }
    });
    // Keysteps of the truth, or of the last method without a truth; a button shows the others.
    const track = video.tracks[0] || video.tracks[video.tracks.length - 1] || [];
    const meant = new Set(track.filter((_, at) => at % 4 === 2));
    const rank = (keystep) => (meant.has(keystep) ? 0 : members && !members.has(keystep) ? 2 : 1);
    const place = members ? (keystep) => data.tasks[video.task].indexOf(keystep) : () => 0;
    const keysteps = [...seconds.keys()].sort((a, b) =>
      rank(a) - rank(b) || place(a) - place(b) || seconds.get(b)[1] - seconds.get(a)[1] || a - b);
    const pick = (keystep) => {
      tracks.classList.toggle("pick", keystep !== null);
      for (const path of tracks.querySelectorAll(".run")) path.classList.toggle("on", path.dataset.k === String(keystep));
    };
    const legend = el("div", { class: "legend", role: "group", "aria-label": "keysteps of this video" });
    const pressed = () => legend.querySelector('[aria-pressed="true"]');
    const restore = () => pick(pressed() ? pressed().dataset.k : null);
    const chips = keysteps.map((keystep) => el("button", {
      type: "button", "aria-pressed": "false", "data-k": keystep, class: rank(keystep) ? "other" : "",
      onpointerenter: () => pick(keystep), onpointerleave: restore,
      onclick: (event) => {
        const chip = event.currentTarget, before = pressed();
        if (before && before !== chip) before.setAttribute("aria-pressed", "false");
        chip.setAttribute("aria-pressed", String(before !== chip));
        restore();
      },
    }, swatch(keystep), el("bdi", {}, data.keysteps[keystep])));
    const shown = Math.min(LEGEND, keysteps.filter((keystep) => !rank(keystep)).length);
    legend.append(...chips.slice(0, shown));
    if (chips.length > shown) {
      const what = shown < LEGEND ? "not in the truth" : "more";
      legend.append(el("button", { type: "button", class: "toggle",
        onclick: (event) => event.currentTarget.replaceWith(...chips.slice(shown)) }, `+ ${chips.length - shown} ${video.tracks[0] ? what : "more"}`));
    }
    return chips.length ? legend : null;
  }

  function fillCard(card, video, terms) {
    const tracks = drawTracks(video, terms), readout = el("div", { class: "readout" });
    const film = addProbe(video, tracks, readout, terms);
    const by = gain(video), notes = [clock(video.duration)];
    if (by !== null) notes.push(`${data.methods[last]} ${signed(by)} points over ${data.methods[0]}`);
    if (!video.tracks[0]) notes.push("no truth");
    if (!video.cues.length) notes.push("no transcript");
    card.style.minHeight = "";
    card.replaceChildren();
    fill(card, {}, [
      el("div", { class: "card-head" }, el("h4", {}, el("bdi", {}, video.id)), notes.map((note) => el("span", {}, note))),
      film ? el("div", { class: "stage" }, film.box, el("div", {}, tracks, readout)) : [tracks, readout],
      drawLegend(video, tracks),
    ]);
  }

  /* Cards are shells until they come near the screen. */
  const waiting = new WeakMap();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting || !waiting.has(entry.target)) continue;
      watcher.unobserve(entry.target);
      fillCard(entry.target, ...waiting.get(entry.target));
      waiting.delete(entry.target);
    }
  }, { rootMargin: "800px" });
  function shell(video, terms) {
    const card = el("article", { class: "card", "aria-label": `video ${video.id}`, style: `min-height:${15 + 2 * data.methods.length}rem` });
    waiting.set(card, [video, terms]);
    watcher.observe(card);
    return card;
  }
  function haystack(video) {
    if (!video.text) {
      const keysteps = new Set(video.tracks.flatMap((track) => (track || []).filter((_, at) => at % 4 === 2)));
      const names = [...keysteps].map((keystep) => data.keysteps[keystep]);
      video.text = [video.id, video.task, ...names, ...video.cues.map((cue) => cue[2])].join(" ").toLowerCase();
    }
    return video.text;
  }
  function drawGroup(task, videos, open, terms) {
    const list = el("div");
    const more = (from) => {
      const until = from ? videos.length : videos.length > SHOWN + 1 ? SHOWN : videos.length;
      list.append(...videos.slice(from, until).map((video) => shell(video, terms)));
      if (until < videos.length) {
        list.append(el("button", { type: "button", class: "more",
          onclick: (event) => { event.currentTarget.remove(); more(until); } }, `Show all ${videos.length} videos`));
      }
    };
    const figures = data.methods.map((name, method) => [name, pooled(videos, method)]).filter((one) => one[1] !== null);
    const group = el("details", { class: "group" },
      el("summary", {}, el("h3", {}, el("bdi", {}, task || "Videos")), el("span", { class: "quiet" }, count(videos.length, "video")),
        el("span", { class: "pooled" }, figures.map(([name, value]) => el("span", {}, el("bdi", {}, name), " ", el("b", {}, `${percent(value, 1)}\u00a0%`))))),
      list);
    group.addEventListener("toggle", () => {
      if (group.open && !list.firstChild) more(0);
      if (!group.open) for (const film of list.querySelectorAll("video")) film.pause();
    });
    group.open = open;
    return group;
  }
  function drawVideos() {
    const terms = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const sorted = data.videos.filter((video) => terms.every((term) => haystack(video).includes(term))).sort(sorts[byId("sort").value]);
    const groups = new Map();
    for (const video of sorted) groups.set(video.task, [...(groups.get(video.task) || []), video]);
    const few = sorted.length <= 12;
    watcher.disconnect();
    byId("groups").replaceChildren(...[...groups].map(([task, videos], at) => drawGroup(task, videos, at === 0 || few, terms)));
    const total = count(data.videos.length, "video");
    const order = `Sorted: ${byId("sort").value}${groups.size > 1 && !few ? "; the task of the first video is open" : ""}.`;
    byId("found").textContent = !data.videos.length ? "There are no videos to show."
      : terms.length ? `${sorted.length.toLocaleString("en")} of ${total} match. ${sorted.length ? order : ""}`
      : `${total}. ${order}`;
  }
  function startVideos() {
    byId("sort").append(...Object.keys(sorts).map((name) => el("option", { value: name }, name)));
    byId("sort").addEventListener("change", drawVideos);
    let timer = 0;
    byId("search").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(drawVideos, 120); });
    document.querySelector(".controls").hidden = !data.videos.length;
    drawVideos();
  }

  /* Highlight the keystep under the pointer and its neighbours; show its row of the table. */
  function startPanel(panel) {
    const picture = panel.querySelector("svg"), note = panel.querySelector(".panel-note");
    const pick = (keystep) => {
      const near = new Set([keystep]);
      for (const edge of picture.querySelectorAll(".edge")) {
        const ends = [edge.dataset.from, edge.dataset.to], on = ends.includes(keystep);
        edge.classList.toggle("on", on);
        if (on) ends.forEach((end) => near.add(end));
      }
      picture.classList.toggle("pick", keystep !== null);
      for (const node of picture.querySelectorAll(".node")) {
        node.classList.toggle("on", node.dataset.k === keystep);
        node.classList.toggle("near", near.has(node.dataset.k));
      }
      const line = keystep && panel.querySelector(`tr[data-k="${keystep}"]`);
      if (!line) return;
      const [name, shown, ...notes] = line.querySelectorAll("th > *");
      note.replaceChildren(el("b", {}, name.cloneNode(true)), " ", shown.cloneNode(true), el("div", {}, "most probably next:"), line.querySelector("ol").cloneNode(true), ...notes.flatMap((one) => [el("div", {}, "notes:"), one.cloneNode(true)]));
    };
    for (const node of picture.querySelectorAll(".node")) {
      const leave = () => { if (document.activeElement !== node) pick(null); };
      fill(node, { onpointerenter: () => pick(node.dataset.k), onfocus: () => pick(node.dataset.k), onblur: () => pick(null), onpointerleave: leave }, []);
    }
  }

  drawKey();
  startVideos();
  document.querySelectorAll(".panel").forEach(startPanel);
})();
