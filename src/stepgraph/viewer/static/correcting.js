// Corrections: each gives all steps of a video as they are then, and is kept at once.
"use strict";

let correcting = false;
const undoable = new Map(); // of each video, what its steps were before

async function correct(id, steps) {
  const answer = await fetch(`correct?of=${part(id)}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(steps),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found?.error ?? "It could not be kept.");
  overview[overview.findIndex((one) => one.id === id)] = found;
  byId.set(id, found);
}

// What changes the steps of a video, and shows it again.
function changing(video, now) {
  const plain = video.steps.map(([start, end, keystep]) => [start, end, keystep]);
  const keep = async (next) => {
    await correct(video.id, next);
    await showVideo(video.id, now());
  };
  const failed = (error) => main.prepend(make("p", { role: "alert" }, error.message));
  return {
    plain,
    change: (next) => {
      undoable.set(video.id, [...(undoable.get(video.id) ?? []), video.corrected ? plain : null]);
      return keep(next).catch(failed);
    },
    undo: () => {
      const before = undoable.get(video.id);
      if (before?.length) keep(before.pop()).catch(failed);
    },
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
      const add = () => change([...plain, [now(), Math.min(now() + 10, video.duration), "new step"]]);
      tools.append(button("Add a step here", add), button("Undo", undo));
      if (video.corrected) tools.append(button("Take all back", () => change(null)));
    }
  }
  if (video.corrected) tools.append(make("span", { class: "badge" }, "corrected"));
  return tools;
}

// Buttons that correct one step.
function corrections(at, now, { plain, change }) {
  const [start, end, name] = plain[at];
  const put = (...next) => change([...plain.slice(0, at), ...next, ...plain.slice(at + 1)]);
  const field = make("input", { list: "keysteps", value: name, "aria-label": `name of step ${at + 1}` });
  field.addEventListener("change", () => field.value.trim() && put([start, end, field.value.trim()]));
  const inside = () => start < now() && now() < end;
  const row = make("div", { class: "correct" }, field);
  for (const [text, can, to] of [
    ["starts here", () => now() < end, () => put([now(), end, name])],
    ["ends here", () => now() > start, () => put([start, now(), name])],
    ["split here", inside, () => put([start, now(), name], [now(), end, name])],
    [
      "join with next",
      () => at + 1 < plain.length,
      () => change([...plain.slice(0, at), [start, plain[at + 1][1], name], ...plain.slice(at + 2)]),
    ],
    ["nothing is done", () => true, () => put()],
  ]) {
    row.append(button(text, () => can() && to(), { "aria-label": `step ${at + 1}: ${text}` }));
  }
  return row;
}
