// Corrections: each gives all steps of a video as they are then, and is kept at once.
"use strict";

let correcting = false;
const undoable = new Map(); // of each video, what its steps were before

async function correct(id, steps) {
  const headers = { "Content-Type": "application/json" };
  const found = await ask("correct", id, { method: "POST", headers, body: JSON.stringify(steps) });
  overview[overview.findIndex((one) => one.id === id)] = found;
  byId.set(id, found);
}

// A step among others, which make way for it where it is new or longer than it was.
function among(others, [start, end, name]) {
  const left = others.flatMap(([from, to, other]) =>
    [[from, Math.min(to, start), other], [Math.max(from, end), to, other]].filter(([a, b]) => a < b),
  );
  return [...left, [start, end, name]].sort(([one], [other]) => one - other);
}

// What changes the steps of a video, and shows it again.
function changing(video, now) {
  const plain = video.steps.map(([start, end, keystep]) => [start, end, keystep]);
  const keep = async (next) => {
    await correct(video.id, next);
    await showVideo(video.id, now());
  };
  const failed = (error) => {
    const told = make("p", { role: "alert" }, error.message);
    main.prepend(told);
    told.scrollIntoView();
  };
  return {
    plain,
    change: (next) => {
      undoable.set(video.id, [...(undoable.get(video.id) ?? []), video.corrected ? plain : null]);
      return keep(next).catch(failed);
    },
    undo: undoable.get(video.id)?.length ? () => keep(undoable.get(video.id).pop()).catch(failed) : null,
  };
}

function correctionTools(video, now, { plain, change, undo }) {
  const tools = make("div", { class: "tools" });
  if (!window.STEPGRAPH) {
    const toggle = () => {
      correcting = !correcting;
      showVideo(video.id, now());
    };
    tools.append(button("Correct", toggle, { "aria-pressed": String(correcting) }));
    if (correcting) {
      const add = () => change(among(plain, [now(), Math.min(now() + 10, video.duration), "new step"]));
      tools.append(button("Add a step here", add), button("Undo", undo, { disabled: undo ? null : "" }));
      if (video.corrected) tools.append(button("Take all back", () => change(null)));
    }
  }
  if (video.corrected) tools.append(make("span", { class: "badge" }, "corrected"));
  return tools;
}

// Buttons that correct one step.
function corrections(at, now, { plain, change }) {
  const [start, end, name] = plain[at];
  const others = plain.filter((_, number) => number !== at);
  const put = (next) => change(among(others, next));
  const field = make("input", { list: "keysteps", value: name, "aria-label": `name of step ${at + 1}` });
  field.addEventListener("change", () => field.value.trim() && put([start, end, field.value.trim()]));
  const inside = () => start < now() && now() < end;
  const row = make("div", { class: "correct" }, field);
  for (const [text, can, to] of [
    ["starts here", () => now() < end, () => put([now(), end, name])],
    ["ends here", () => now() > start, () => put([start, now(), name])],
    ["split here", inside, () => change(among(among(others, [start, now(), name]), [now(), end, name]))],
    ["join with next", () => at + 1 < plain.length, () => put([start, plain[at + 1][1], name])],
    ["nothing is done", () => true, () => change(others)],
  ]) {
    row.append(button(text, () => can() && to(), { "aria-label": `step ${at + 1}: ${text}` }));
  }
  return row;
}
