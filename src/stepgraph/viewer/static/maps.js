// The procedure map of a task, from START to END, and every place in all videos with a step.
"use strict";

let left = () => {}; // stops the player of the places on the page

async function showMap(task = tasks[0], keystep) {
  if (!tasks.includes(task)) throw new Error(`There is no task ${task}.`);
  const mine = visit;
  const found = await ask("map", task);
  if (mine !== visit) return;
  leave();
  const videos = overview.filter((video) => taskOf(video) === task);
  const side = make("div", { class: "side" });
  const choose = (name) => {
    left();
    left = () => {};
    for (const node of drawing.querySelectorAll(".node[role=button]")) {
      node.setAttribute("aria-pressed", String(node.dataset.name === name));
    }
    drawing.classList.toggle("chosen", name !== undefined);
    for (const edge of drawing.querySelectorAll(".edge")) {
      edge.classList.toggle("near", edge.dataset.first === name || edge.dataset.second === name);
    }
    side.replaceChildren(...(name === undefined ? aboutTask(found, videos, open) : aboutStep(found, name)));
  };
  const open = (name) => {
    history.replaceState(null, "", `#graph/${part(task)}/${part(name)}`);
    choose(name);
    if (side.getBoundingClientRect().top > window.innerHeight / 2) side.scrollIntoView(); // it is below the map
  };
  const drawing = drawMap(found, open);
  leave = () => {
    left();
    left = () => {};
  };
  const select = make(
    "select",
    { "aria-label": "Task", onchange: (event) => (location.hash = `graph/${part(event.target.value)}`) },
    ...tasks.map((name) => make("option", { value: name, ...(name === task ? { selected: "" } : {}) }, name)),
  );
  const note = `${found.made[0].toUpperCase()}${found.made.slice(1)}. Each box counts the videos with a confident match of the step. Each arrow shows how often a step comes next, the listed order included; a wider arrow was seen more often. Choose a step to see every place where it is done.`;
  const rest = found.left_out ? ` Left out: ${plural(found.left_out, "step")} in the fewest videos.` : "";
  show(
    task,
    make("div", { class: "head" }, make("h1", {}, task), tasks.length > 1 ? select : null),
    make("p", { class: "quiet" }, note, rest),
    make("div", { class: "mapped" }, make("div", { class: "card map", tabindex: "0", role: "region", "aria-label": "procedure map of the task" }, drawing), side),
  );
  choose(keystep);
}

function drawMap(found, open) {
  const [width, height] = found.size;
  const box = `0 0 ${width} ${height}`;
  const picture = draw("svg", { class: "picture", viewBox: box, width, height, role: "group", "aria-label": `how “${found.task}” is done` });
  for (const edge of found.edges) {
    const [first, second] = edge.ends;
    const group = draw("g", { class: `edge ${edge.kind}`, "data-first": first, "data-second": second });
    group.append(draw("title", {}, edge.description), draw("path", { d: edge.line, "stroke-width": edge.wide }), draw("path", { class: "tip", d: edge.tip }));
    picture.append(group);
  }
  for (const edge of found.edges.filter((one) => one.share)) {
    const [x, y] = edge.beside;
    const group = draw("g", { class: "edge", "data-first": edge.ends[0], "data-second": edge.ends[1] });
    picture.append(fill(group, {}, [draw("text", { class: "share", x, y }, edge.share)]));
  }
  for (const node of found.nodes) picture.append(drawNode(node, open));
  return picture;
}

function drawNode(node, open) {
  const [x, y, width, height] = node.box;
  const kind = node.end ? "end" : node.optional ? "optional" : "";
  const group = draw("g", { class: `node ${kind}` });
  const rect = { x: x - width / 2, y: y - height / 2, width, height, rx: node.end ? height / 2 : 8 };
  group.append(draw("title", {}, node.description ? `${node.name}: ${node.description}` : node.name), draw("rect", rect));
  const lead = 17;
  const top = y - (node.note ? 0.45 * lead : 0) + 4.5 - (lead * (node.lines.length - 1)) / 2;
  node.lines.forEach((line, at) => group.append(draw("text", { x, y: top + lead * at }, line)));
  if (node.note) group.append(draw("text", { class: "shown", x, y: y + height / 2 - 8 }, node.note));
  if (!node.end) {
    const hue = { x: rect.x + 4, y: rect.y + 5, width: 4, height: height - 10, rx: 2 };
    group.append(draw("rect", { class: "hue", step: node.name, ...hue }));
    fill(group, { role: "button", tabindex: "0", "data-name": node.name, "aria-pressed": "false", "aria-label": `${node.name}: ${node.description}` }, []);
    group.addEventListener("click", () => open(node.name));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(node.name);
    });
  }
  return group;
}

function placesWith(name) {
  return overview.flatMap((video) =>
    video.steps
      .filter((step) => step[2] === name)
      .map(([start, end, keystep]) => ({ video, start, end, keystep })),
  );
}

function aboutStep(found, name) {
  const node = found.nodes.find((one) => one.name === name);
  const places = placesWith(name);
  const videos = new Set(places.map((one) => one.video)).size;
  const shown = placesOf(places);
  left = shown.gone;
  const description = node?.description ? `${node.description[0].toUpperCase()}${node.description.slice(1)}.` : null;
  const count = `Done ${plural(places.length, "time")} in ${plural(videos, "video")} of this folder.`;
  const lines = (node?.notes ?? []).map((line) => make("li", {}, make("bdi", {}, line)));
  const notes = lines.length ? make("details", { open: "" }, make("summary", {}, "Notes from the list of steps"), make("ul", { class: "words" }, ...lines)) : null;
  return [make("h2", {}, dot(name), ` ${name}`), description ? make("p", { class: "quiet" }, description) : null, notes, make("p", {}, count), ...shown.parts].filter(Boolean);
}

function aboutTask(found, videos, open) {
  const steps = found.nodes.filter((node) => !node.end);
  const rows = steps.map((node) =>
    make("li", {}, make("button", { type: "button", class: "step", onclick: () => open(node.name) }, dot(node.name), make("span", { class: "name" }, node.name), make("span", { class: "quiet" }, String(placesWith(node.name).length)))),
  );
  const shown = videos.slice(0, 12).map((video) => make("li", {}, make("a", { href: addressOf(video.id), class: "mini" }, make("span", { class: "cut end", title: video.id }, make("bdi", {}, video.id)), strip(video))));
  const more = videos.length > shown.length ? make("p", { class: "quiet" }, `… and ${videos.length - shown.length} more`) : null;
  return [make("h2", {}, "Steps, and how often they occur here"), make("ol", { class: "steps plain" }, ...rows), make("h2", {}, plural(videos.length, "video")), make("ul", { class: "minis" }, ...shown), more].filter(Boolean);
}
