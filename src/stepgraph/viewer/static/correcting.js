// Corrections: each sends all steps of a video to the server, which saves them at once.
"use strict";

let correcting = false;
const undoable = new Map(); // earlier steps of each video
let saving = Promise.resolve(); // corrections run one after the other, each on the result of the last
let released = Promise.resolve(); // the page is drawn again only after the click that left a field
document.addEventListener("pointerdown", () => {
  released = new Promise((done) => {
    for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => setTimeout(done), { once: true });
  });
});

async function correct(id, steps) {
  const headers = { "Content-Type": "application/json" };
  const found = await ask("correct", id, { method: "POST", headers, body: JSON.stringify(steps) });
  overview[overview.findIndex((one) => one.id === id)] = found;
  byId.set(id, found);
}

// Insert a step; others are cut where they overlap it.
function among(others, [start, end, name]) {
  const left = others.flatMap(([from, to, other]) =>
    [[from, Math.min(to, start), other], [Math.max(from, end), to, other]].filter(([a, b]) => a < b),
  );
  return [...left, [start, end, name]].sort(([one], [other]) => one - other);
}

// Make the functions that change the steps of a video and show it again.
function changing(video, now) {
  const plainly = ({ steps }) => steps.map(([start, end, keystep]) => [start, end, keystep]);
  const mine = visit;
  const keep = async (next, undoing) => {
    await correct(video.id, next);
    undoable.set(video.id, undoing);
    await released;
    if (mine === visit) await showVideo(video.id, now());
  };
  const failed = (error) => {
    const alert = make("p", { role: "alert" }, error.message);
    main.prepend(alert);
    alert.scrollIntoView();
  };
  const past = () => undoable.get(video.id) ?? [];
  const next = (work) => (saving = saving.then(work).catch(failed));
  const change = (edit) => {
    const before = videoOf(video.id);
    return keep(edit(plainly(before)), [...past(), before.corrected ? plainly(before) : null]);
  };
  const undo = () => past().length && keep(past().at(-1), past().slice(0, -1));
  return {
    plain: plainly(video),
    change: (edit) => next(() => change(edit)),
    undo: past().length ? () => next(undo) : null,
  };
}

function correctionTools(video, now, { change, undo }) {
  const tools = make("div", { class: "tools" });
  if (!window.STEPGRAPH) {
    const toggle = () => {
      correcting = !correcting;
      showVideo(video.id, now());
    };
    tools.append(button("Correct", toggle, { "aria-pressed": String(correcting) }));
    if (correcting) {
      const add = (at) => change((steps) => among(steps, [at, Math.min(at + 10, video.duration), "new step"]));
      tools.append(button("Add a step here", () => add(now())), button("Undo", undo, { disabled: undo ? null : "" }));
      if (video.corrected) tools.append(button("Discard all corrections", () => change(() => null)));
    }
  }
  if (video.corrected) tools.append(make("span", { class: "badge" }, "corrected"));
  return tools;
}

// Buttons that correct one step.
function corrections(at, now, { plain, change }) {
  const [start, end, old] = plain[at];
  const field = make("input", { list: "keysteps", value: old, "aria-label": `name of step ${at + 1}` });
  // Replace this step by others, under the name in the field.
  const put = (...spans) => {
    const name = field.value.trim() || old;
    const others = (steps) => steps.filter(([from]) => from !== start);
    change((steps) => spans.reduce((made, [from, to]) => among(made, [from, to, name]), others(steps)));
  };
  field.addEventListener("change", () => {
    field.value = field.value.trim() || old;
    if (field.value !== old) put([start, end]);
  });
  field.addEventListener("keydown", (event) => event.key === "Escape" && (field.value = old));
  const inside = () => start < now() && now() < end;
  const row = make("div", { class: "correct" }, field);
  for (const [text, can, to] of [
    ["Start here", () => now() < end, () => put([now(), end])],
    ["End here", () => now() > start, () => put([start, now()])],
    ["Split here", inside, () => put([start, now()], [now(), end])],
    ["Join with next", () => at + 1 < plain.length, () => put([start, plain[at + 1][1]])],
    ["Delete", () => true, () => put()],
  ]) {
    row.append(button(text, () => can() && to(), { "aria-label": `step ${at + 1}: ${text}` }));
  }
  return row;
}
