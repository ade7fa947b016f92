// One video: player, timeline, steps with their explanation, transcript.
"use strict";

const ORIGINS = {
  anchor: "A sentence or picture of this chapter matches the step.",
  path: "No sentence or picture reaches the threshold; inferred from the steps before and after.",
  label: "The method does not record how it found the step.",
  corrected: "A person corrected this step.",
};

async function showVideo(id, time) {
  const mine = visit;
  const more = await ask("result", videoOf(id).id);
  if (mine !== visit) return;
  const video = videoOf(id); // with the latest corrections
  leave();
  const again = document.activeElement?.getAttribute("aria-label");
  const player = playerOf(video);
  let now = Math.min(time ?? 0, video.duration);
  player?.jump(now);
  const at = () => Math.round(10 * now) / 10;
  const jump = (to) => {
    now = Math.min(Math.max(0, to), video.duration);
    player?.jump(now);
    follow();
  };
  const line = timeline(video, jump);
  const changes = changing(video, at);
  const steps = stepList(video, more, jump, (number) => (correcting ? corrections(number, at, changes) : null));
  const sentences = transcript(more.transcript, jump);
  function follow() {
    if (player) now = player.time();
    line.follow(now);
    steps.follow(now);
    sentences.follow(now);
  }
  player?.listen(follow);
  const keys = videoKeys(video, player, () => now, jump);
  document.addEventListener("keydown", keys);
  leave = () => {
    document.removeEventListener("keydown", keys);
    player?.pause();
    player?.gone?.();
  };
  const options = () => [...colours.keys()].slice(0, 500).map((name) => make("option", { value: name }));
  const names = correcting ? make("datalist", { id: "keysteps" }, ...options()) : null;
  const none = make("p", { class: "empty" }, "There is no video file to play. The timeline and the steps still work.");
  const left = [
    make("div", { class: "screen" }, player?.element ?? none, line.element),
    make("p", { class: "quiet small" }, player ? "Keys: space plays, arrows move by 5 s, 1 to 9 jump to a step." : "Keys: arrows move by 5 s, 1 to 9 jump to a step."),
    make("h2", {}, "Transcript"),
    ...sentences.parts,
  ];
  const right = [make("h2", {}, "Steps"), correctionTools(video, at, changes), names, steps.element, deviationList(video, jump)];
  show(id, heading(video, more), make("div", { class: "watch" }, make("div", {}, ...left), make("div", {}, ...right)));
  follow();
  steps.row(Number(again?.match(/step (\d+)/)?.[1]) - 1); // it may not exist yet in a long list
  if (again) main.querySelector(`[aria-label="${CSS.escape(again)}"]`)?.focus({ preventScroll: true });
}

function heading(video, more) {
  const probable = Object.entries(more.tasks ?? {}).filter(([, share]) => share >= 0.005).slice(0, 3);
  const shown = probable.map(([name, share]) =>
    make("li", {}, make("a", { href: `#graph/${part(name)}` }, name), ` ${percent(share)}`),
  );
  const others = overview.filter((one) => one !== video && taskOf(one) === taskOf(video)).slice(0, 300);
  const choice = make(
    "select",
    { "aria-label": "Compare with", onchange: (event) => (location.hash = `compare/${part(video.id)}/${part(event.target.value)}`) },
    make("option", { value: "", disabled: "", selected: "" }, "Compare with …"),
    ...others.map((one) => make("option", { value: one.id }, one.id)),
  );
  const facts = make("ul", { class: "facts" }, ...shown, make("li", {}, clock(video.duration)), make("li", {}, `${percent(video.covered)} covered by steps`));
  const tools = make("div", { class: "tools" }, ...neighbours(video), others.length ? choice : null);
  return make("div", { class: "head" }, make("h1", {}, video.id), facts, tools);
}

// Links to the videos before and after it in the last sorting of the list, whatever was corrected.
function neighbours(video) {
  if (!order.includes(video.id)) order = chosen().map((one) => one.id);
  const at = order.indexOf(video.id);
  const link = (id, text) => (id === undefined || at < 0 ? null : make("a", { href: addressOf(id), title: id }, text));
  return [link(order[at - 1], "← Previous"), link(order[at + 1], "Next →")];
}

// The bar under the player: one control for any number of steps.
function timeline(video, jump) {
  const needle = make("div", { class: "needle" });
  const track = make("div", {
    class: "track",
    role: "slider",
    tabindex: "0",
    "aria-label": "timeline",
    "aria-valuemin": "0",
    "aria-valuemax": String(Math.round(video.duration)),
  });
  track.append(...segments(video), needle);
  peekable(track, video);
  track.addEventListener("click", (event) => {
    const box = track.getBoundingClientRect();
    jump(((event.clientX - box.left) / box.width) * video.duration);
  });
  const scroll = make("div", { class: "scroll" }, track);
  const element = make("div", { class: "timeline" }, scroll);
  // A timeline with too many steps to distinguish can be zoomed.
  const fine = Math.min(400, Math.ceil(Math.max(video.steps.length / 40, video.duration / 3600)));
  if (fine > 1) {
    let spread = 1;
    const zoom = (by) => {
      spread = Math.min(fine, Math.max(1, spread * by));
      track.style.width = `${100 * spread}%`;
      track.replaceChildren(...segments(video, spread), needle);
      centre();
    };
    element.append(
      make("div", { class: "tools" }, button("−", () => zoom(0.5), { "aria-label": "Zoom out of the timeline" }), button("+", () => zoom(2), { "aria-label": "Zoom into the timeline" })),
    );
  }
  let place = 0;
  const centre = () => {
    if (track.offsetWidth > scroll.clientWidth) scroll.scrollLeft = place * track.offsetWidth - scroll.clientWidth / 2;
  };
  const follow = (now) => {
    place = video.duration ? now / video.duration : 0;
    needle.style.left = `${100 * place}%`;
    const step = stepAt(video, now);
    track.setAttribute("aria-valuenow", String(Math.round(now)));
    track.setAttribute("aria-valuetext", `${clock(now)}, ${step < 0 ? "no step" : video.steps[step][2]}`);
    centre();
  };
  return { element, follow };
}

const stepAt = (video, now) => video.steps.findLastIndex(([start, end]) => start <= now && now < end);

// All steps; tools(at) returns the element under one of them, or null.
function stepList(video, more, jump, tools) {
  let current = -1;
  const build = (at) => {
    const [start, end, keystep, sure] = video.steps[at];
    const spoken = more.chapters[at]?.words;
    const words = spoken ? make("span", { class: "words" }, `“${spoken}”`) : null;
    const go = make(
      "button",
      { type: "button", class: "step", onclick: () => jump(start), "aria-current": at === current ? "true" : null },
      dot(keystep),
      thumb(video, at),
      make("span", { class: "time" }, clock(start)),
      make("span", { class: "name" }, keystep, words),
      sureness(sure),
    );
    const why = button("Why?", () => {
      const open = why.getAttribute("aria-expanded") !== "true";
      why.setAttribute("aria-expanded", String(open));
      if (open) item.append(explanation(video, more, at, jump));
      else item.querySelector(".explanation")?.remove();
    }, { class: "why", "aria-expanded": "false", "aria-label": `Why ${keystep} at ${clock(start)}?` });
    const item = make("li", { "data-end": String(end) }, make("div", { class: "line" }, go, why), tools(at));
    return item;
  };
  const words = (at) => `${clock(video.steps[at][0])} ${video.steps[at][2]} ${more.chapters[at]?.words ?? ""}`;
  const long = video.steps.length > 30;
  const list = make("ol", { class: long ? "steps long" : "steps" });
  const rows = growing(list, build, words);
  rows.fill([...video.steps.keys()]);
  const follow = (now) => {
    const next = stepAt(video, now);
    if (next === current) return;
    rows.row(current)?.querySelector(".step").removeAttribute("aria-current");
    current = next;
    const item = rows.row(current, true);
    item?.querySelector(".step").setAttribute("aria-current", "true");
    if (long) centreIn(list, item);
  };
  const element = video.steps.length ? list : make("p", { class: "empty" }, "No step was recognised.");
  return { element, follow, row: (at) => rows.row(at, true) };
}

// Explain a step: how it was found, its alternatives, and the sentences during it.
function explanation(video, more, at, jump) {
  const [start, end, keystep, sure] = video.steps[at];
  const { score, origin, words, alternatives } = more.chapters[at] ?? {};
  const sentences = more.transcript.filter(([from, to]) => from < end && to > start);
  const list = sentences.slice(0, 40).map(([from, , text]) =>
    make(
      "li",
      {},
      make("button", { type: "button", class: "sentence", onclick: () => jump(from) }, make("span", { class: "time" }, clock(from)), text === words ? make("mark", {}, text) : text),
    ),
  );
  const others = (alternatives ?? []).map(([name, share]) => make("li", {}, dot(name), make("span", { class: "name" }, name), sureness(share, "probability")));
  const number = score === null || score === undefined ? null : `, score ${score.toFixed(2)}`;
  return make(
    "div",
    { class: "explanation" },
    make("p", {}, `${ORIGINS[origin] ?? ""} From ${clock(start)} to ${clock(end)}, confidence ${percent(sure)}`, number, "."),
    others.length ? make("h3", {}, "It may also be") : null,
    others.length ? make("ul", { class: "others" }, ...others) : null,
    list.length ? make("h3", {}, "Sentences during this step") : null,
    list.length ? make("ul", { class: "cues" }, ...list) : null,
    sentences.length > list.length ? make("p", { class: "quiet" }, `… and ${plural(sentences.length - list.length, "more sentence")}`) : null,
    make("p", {}, make("a", { href: `#graph/${part(taskOf(video))}/${part(keystep)}` }, "All places where this step is done")),
  );
}

// List the deviations of a video from most videos of its task.
function deviationList(video, jump) {
  if (!video.deviations.length) return null;
  const items = video.deviations.map(([start, kind, what, why]) => {
    const text = make("span", {}, what, make("span", { class: "words" }, why));
    const mark = make("span", { class: `kind ${kind}` }, kind === "order" ? "unusual order" : kind);
    if (start === null) return make("li", {}, mark, text);
    return make("li", {}, mark, make("button", { type: "button", class: "sentence", onclick: () => jump(start) }, text));
  });
  return make("section", {}, make("h2", {}, "Deviations from most videos of this task"), make("ul", { class: "deviations" }, ...items));
}

function transcript(sentences, jump) {
  if (!sentences.length) return { parts: [make("p", { class: "empty" }, "There is no transcript.")], follow: () => {} };
  let [spoken, wanted] = [-1, ""];
  // Position of the searched text in a sentence; -1 without any.
  const place = (at) => (wanted ? sentences[at][2].toLowerCase().indexOf(wanted) : -1);
  const build = (at) => {
    const [start, , text] = sentences[at];
    const [from, end] = [place(at), place(at) + wanted.length];
    const words = from < 0 ? [text] : [text.slice(0, from), make("mark", {}, text.slice(from, end)), text.slice(end)];
    const go = make(
      "button",
      { type: "button", class: "sentence", onclick: () => jump(start), "aria-current": at === spoken ? "true" : null },
      make("span", { class: "time" }, clock(start)),
      make("span", { class: "text" }, ...words),
    );
    return make("li", {}, go);
  };
  const list = make("ul", { class: "cues panel", tabindex: "0", "aria-label": "transcript" });
  if (sentences.at(-1)[0] >= 36000) list.style.setProperty("--clock", "4.6rem"); // ten hours
  const rows = growing(list, build, (at) => `${clock(sentences[at][0])} ${sentences[at][2]}`);
  const all = [...sentences.keys()];
  rows.fill(all);
  const find = (event) => {
    wanted = event.target.value.toLowerCase();
    rows.fill(wanted ? all.filter((at) => place(at) >= 0) : all);
    list.scrollTop = 0;
    centreIn(list, rows.row(spoken, true));
  };
  const follow = (now) => {
    const last = sentences.findLastIndex(([start]) => start <= now);
    if (last === spoken) return;
    rows.row(spoken)?.firstChild.removeAttribute("aria-current");
    spoken = last;
    const item = rows.row(spoken, true);
    item?.firstChild.setAttribute("aria-current", "true");
    centreIn(list, item);
  };
  const field = make("input", { type: "search", placeholder: "Search the transcript", "aria-label": "Search the transcript", oninput: find });
  return { parts: [field, list], follow };
}

function videoKeys(video, player, now, jump) {
  return (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const number = Number(event.key);
    const aside = event.target.matches("button, video, audio, a, summary");
    if (event.key === " " && player && !aside) {
      if (player.paused()) player.play();
      else player.pause();
    } else if (event.key === "ArrowLeft") jump(now() - 5);
    else if (event.key === "ArrowRight") jump(now() + 5);
    else if (number >= 1 && video.steps[number - 1]) jump(video.steps[number - 1][0]);
    else return;
    event.preventDefault();
  };
}
