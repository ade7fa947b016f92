// The list of all videos; only its visible lines exist.
"use strict";

let sorted = { by: "id", down: false };
let filter = "";
let order = []; // ids in the order of the last list
let scrolled = 0; // position of the list

const COLUMNS = [
  ["id", "video"],
  ["task", "task"],
  ["duration", "length"],
  ["count", "steps"],
  ["covered", "covered"],
  ["sure", "confidence"],
  ["deviations", "deviations"],
];
const VALUES = {
  count: (video) => video.steps.length,
  deviations: (video) => video.deviations.length,
};

// The deviations of a video from most videos of its task: counts, with all of them as the title.
function deviationCounts(video) {
  const missing = video.deviations.filter(([, kind]) => kind === "missing").length;
  const others = video.deviations.length - missing;
  const short = [missing ? `${missing} missing` : "", others ? plural(others, "other deviation") : ""].filter(Boolean);
  const all = video.deviations.map(([, , what, why]) => `${what} (${why})`).join("\n");
  return make("span", { class: "cut deviating", title: all }, short.join(", ") || "–");
}

function line(video) {
  const longest = video.steps.reduce((best, [start, end], at, all) =>
    best < 0 || end - start > all[best][1] - all[best][0] ? at : best, -1);
  const name = make("span", { class: "cut", title: video.id }, video.id);
  if (video.corrected) name.append(make("span", { class: "badge" }, "corrected"));
  const task = make("span", { class: "tasked" }, make("span", { class: "cut", title: video.task }, video.task ?? "–"));
  if (video.share !== null) task.append(make("span", { class: "quiet number" }, percent(video.share)));
  return make(
    "a",
    { class: "row", href: addressOf(video.id) },
    make("span", { class: "named" }, thumb(video, longest), name),
    task,
    make("span", { class: "number" }, clock(video.duration)),
    make("span", { class: "number" }, String(video.steps.length)),
    make("span", { class: "number" }, percent(video.covered)),
    make("span", { class: "number" }, percent(video.sure)),
    deviationCounts(video),
    strip(video),
  );
}

function chosen() {
  const wanted = filter.toLowerCase();
  const holds = (video) =>
    [video.id, video.task ?? "", ...video.steps.map((step) => step[2])].some((text) =>
      text.toLowerCase().includes(wanted),
    );
  const value = VALUES[sorted.by] ?? ((video) => video[sorted.by]);
  const found = wanted ? overview.filter(holds) : [...overview];
  const sign = sorted.down ? -1 : 1;
  // Videos without a value come last in both directions.
  return found.sort((one, other) => {
    const [a, b] = [value(one) ?? null, value(other) ?? null];
    if (a === null || b === null) return (a === null) - (b === null);
    return (a < b ? -1 : a > b ? 1 : 0) * sign;
  });
}

function showOverview() {
  const pictures = overview.some((video) => video.pictures);
  const list = make("div", { class: pictures ? "list pictured" : "list" });
  const count = make("span", { class: "quiet", "aria-live": "polite" });
  let shown = [];
  const drawLines = () => {
    const height = parseFloat(getComputedStyle(list).getPropertyValue("--row"));
    list.style.height = `${shown.length * height}px`;
    const top = Math.max(0, -list.getBoundingClientRect().top);
    const first = Math.max(0, Math.floor(top / height) - 10);
    const last = Math.min(shown.length, first + Math.ceil(window.innerHeight / height) + 20);
    if (list.drawn === `${first} ${last} ${height}` && list.of === shown) return;
    [list.drawn, list.of] = [`${first} ${last} ${height}`, shown];
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
    order = shown.map((video) => video.id);
    count.textContent = `${shown.length} of ${plural(overview.length, "video")}`;
    for (const head of heads.children) {
      const own = head.dataset.by === sorted.by;
      head.setAttribute("aria-pressed", String(own));
      head.dataset.way = own ? (sorted.down ? "down" : "up") : "";
    }
    drawLines();
  };
  const sort = (by, down) => {
    sorted = { by, down };
    renew();
  };
  const heads = make("div", { class: "row heads", role: "group", "aria-label": "sort by" });
  for (const [by, name] of COLUMNS) {
    const turn = () => sort(by, sorted.by === by ? !sorted.down : by === "deviations");
    heads.append(button(name, turn, { "data-by": by }));
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
  const tools = make("div", { class: "tools" }, field, button("What to check first", () => sort("sure", false)), count);
  const missing = unread ? make("p", { role: "status" }, `Some results could not be read: ${unread}`) : null;
  show("", make("h1", {}, "Videos"), missing, tools, heads, list);
  const waiting = () => requestAnimationFrame(drawLines);
  window.addEventListener("scroll", waiting, { passive: true });
  window.addEventListener("resize", waiting);
  leave = () => {
    scrolled = window.scrollY;
    window.removeEventListener("scroll", waiting);
    window.removeEventListener("resize", waiting);
  };
  renew();
}
