// Two videos side by side, aligned by step.
"use strict";

// Align two lists by their longest common subsequence: pairs of positions, null where one has none.
function aligned(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let a = one.length - 1; a >= 0; a -= 1) {
    for (let b = other.length - 1; b >= 0; b -= 1) {
      const same = one[a][2] === other[b][2];
      lengths[a][b] = same ? lengths[a + 1][b + 1] + 1 : Math.max(lengths[a + 1][b], lengths[a][b + 1]);
    }
  }
  const pairs = [];
  let [a, b] = [0, 0];
  while (a < one.length || b < other.length) {
    if (a < one.length && b < other.length && one[a][2] === other[b][2]) pairs.push([a++, b++]);
    else if (b >= other.length || (a < one.length && lengths[a + 1][b] >= lengths[a][b + 1])) pairs.push([a++, null]);
    else pairs.push([null, b++]);
  }
  return pairs;
}

const MOST_COMPARED = 1500; // steps of each video: more are many hours, too long to read side by side

async function showCompared(first, second) {
  const videos = [videoOf(first), videoOf(second)];
  leave();
  const players = videos.map(playerOf);
  const steps = videos.map((video) => video.steps.slice(0, MOST_COMPARED));
  const pairs = aligned(...steps);
  const jump = (times) => players.forEach((player, side) => times[side] !== null && player?.jump(times[side]));
  const columns = videos.map((video, side) =>
    make(
      "div",
      {},
      make("h2", {}, make("a", { href: addressOf(video.id) }, video.id)),
      players[side]?.element ?? make("p", { class: "empty" }, "There is no video file to play."),
      make("ul", { class: "facts" }, make("li", {}, video.task ?? "no task"), make("li", {}, clock(video.duration)), make("li", {}, plural(video.steps.length, "step"))),
    ),
  );
  const rows = pairs.map((pair) => {
    const own = pair.map((at, side) => (at === null ? null : steps[side][at]));
    const name = (own[0] ?? own[1])[2];
    const cells = own.map((step, side) => {
      if (step) return make("span", { class: "side" }, thumb(videos[side], pair[side]), make("span", { class: "time" }, `${clock(step[0])} for ${clock(step[1] - step[0])}`));
      const elsewhere = videos[side].steps.find((other) => other[2] === name);
      return make("span", { class: "side quiet" }, elsewhere ? `elsewhere, at ${clock(elsewhere[0])}` : "not done");
    });
    const go = () => jump(own.map((step) => step?.[0] ?? null));
    const kind = own[0] && own[1] ? "both" : "one";
    const middle = make("span", { class: "name" }, dot(name), name);
    return make("li", {}, make("button", { type: "button", class: `pair ${kind}`, onclick: go }, cells[0], middle, cells[1]));
  });
  const both = pairs.filter(([a, b]) => a !== null && b !== null).length;
  const able = players.filter(Boolean);
  const toggle = () => {
    const still = able.every((player) => player.paused());
    able.forEach((player) => (still ? player.play() : player.pause()));
  };
  const swap = button("Swap sides", () => (location.hash = `compare/${part(second)}/${part(first)}`));
  leave = () => players.forEach((player) => (player?.pause(), player?.gone?.()));
  show(
    `${first} and ${second}`,
    make("h1", {}, "Side by side"),
    make("div", { class: "tools" }, able.length ? button("Play both", toggle) : null, swap, make("span", { class: "quiet" }, `${both} of ${plural(pairs.length, "step")} match in the same order`)),
    make("div", { class: "two" }, ...columns),
    ribbons(videos, steps, pairs),
    make("ol", { class: "pairs" }, ...rows),
  );
}

// Draw both timelines, with bands that connect the same steps.
function ribbons(videos, steps, pairs) {
  const picture = draw("svg", { class: "ribbons", viewBox: "0 0 1000 120", preserveAspectRatio: "none", role: "img", "aria-label": "both timelines; bands connect the same steps" });
  const span = (side, at) => steps[side][at].slice(0, 2).map((time) => (1000 * time) / (videos[side].duration || 1));
  for (const [a, b] of pairs) {
    if (a === null || b === null) continue;
    const [[x0, x1], [x2, x3]] = [span(0, a), span(1, b)];
    const band = `M${x0} 24C${x0} 60 ${x2} 60 ${x2} 96L${x3} 96C${x3} 60 ${x1} 60 ${x1} 24Z`;
    picture.append(draw("path", { class: "band", d: band, step: steps[0][a][2] }));
  }
  [0, 96].forEach((y, side) => {
    picture.append(draw("rect", { class: "ground", x: 0, y, width: 1000, height: 24 }));
    steps[side].forEach(([, , keystep], at) => {
      const [x, end] = span(side, at);
      picture.append(draw("rect", { class: "piece", x, y, width: end - x, height: 24, step: keystep }, draw("title", {}, keystep)));
    });
  });
  return picture;
}
