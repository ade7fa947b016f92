// What a search found: moments, grouped by step, playable one after the other.
"use strict";

async function showFound(words) {
  leave();
  leave = () => {};
  question.value = words;
  show(words, make("p", { class: "quiet" }, "Searching …"));
  const mine = visit;
  const moments = await ask("search", words);
  if (mine !== visit) return;
  const groups = new Map();
  for (const moment of moments) {
    const name = moment.keystep ?? "said where no step is done";
    groups.set(name, [...(groups.get(name) ?? []), moment]);
  }
  const items = [...groups].map(([name, found]) => [
    make("h2", {}, dot(name), ` ${name}`),
    make("ol", { class: "moments" }, ...found.map((moment) => make("li", {}, momentLink(moment)))),
  ]);
  const places = moments
    .filter((moment) => byId.has(moment.video))
    .map((moment) => ({ video: videoOf(moment.video), start: moment.start, end: Math.max(moment.end, moment.start + 8), keystep: moment.keystep, words: moment.text }));
  const shown = placesOf(places);
  const playable = places.some(({ video }) => video.plays || video.youtube);
  leave = shown.gone;
  const found = make("div", {}, ...(items.length ? items.flat() : [make("p", { class: "empty" }, "Nothing was found.")]));
  const side = playable ? make("div", { class: "side" }, make("h2", {}, "One after the other"), ...shown.parts.filter(Boolean)) : null;
  show(words, make("h1", {}, words), make("p", { class: "quiet" }, `${plural(moments.length, "moment")}, the best first`), make("div", { class: side ? "mapped wide" : "" }, found, side));
}

function momentLink(moment) {
  const video = byId.get(moment.video);
  const at = video ? stepAt(video, moment.start) : -1;
  return make(
    "a",
    { href: addressOf(moment.video, moment.start), class: "moment" },
    (video && thumb(video, at)) ?? make("span", { class: "thumb none" }),
    make("span", { class: "time" }, clock(moment.start)),
    make("span", { class: "name" }, moment.video, make("span", { class: "words" }, `“${moment.text}”`)),
    make("span", { class: "quiet number", title: "how well it answers, at most 1" }, moment.score.toFixed(2)),
  );
}
