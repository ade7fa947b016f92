// Results of a search: sentences, grouped by step, which can be played one after the other.
"use strict";

async function showFound(words) {
  leave();
  leave = () => {};
  question.value = words;
  show(words, make("p", { class: "quiet" }, "Searching …"));
  const mine = visit;
  const hits = await ask("search", words);
  if (mine !== visit) return;
  const groups = new Map();
  for (const hit of hits) {
    const name = hit.keystep ?? "outside of all steps";
    groups.set(name, [...(groups.get(name) ?? []), hit]);
  }
  const items = [...groups].map(([name, found]) => [
    make("h2", {}, dot(name), ` ${name}`),
    make("ol", { class: "hits" }, ...found.map((hit) => make("li", {}, hitLink(hit)))),
  ]);
  const places = hits
    .filter((hit) => byId.has(hit.video))
    .map((hit) => ({ video: videoOf(hit.video), start: hit.start, end: Math.max(hit.end, hit.start + 8), keystep: hit.keystep, words: hit.text }));
  const shown = placesOf(places);
  const playable = places.some(({ video }) => video.plays || video.youtube);
  leave = shown.gone;
  const found = make("div", {}, ...(items.length ? items.flat() : [make("p", { class: "empty" }, "No sentence was found.")]));
  const side = playable ? make("div", { class: "side" }, make("h2", {}, "Play one after the other"), ...shown.parts.filter(Boolean)) : null;
  show(words, make("h1", {}, words), make("p", { class: "quiet" }, `${plural(hits.length, "sentence")}, the best match first`), make("div", { class: side ? "mapped wide" : "" }, found, side));
}

function hitLink(hit) {
  const video = byId.get(hit.video);
  const at = video ? stepAt(video, hit.start) : -1;
  return make(
    "a",
    { href: addressOf(hit.video, hit.start), class: "hit" },
    (video && thumb(video, at)) ?? make("span", { class: "thumb none" }),
    make("span", { class: "time" }, clock(hit.start)),
    make("span", { class: "name" }, hit.video, make("span", { class: "words" }, `“${hit.text}”`)),
    make("span", { class: "quiet number", title: "similarity to the question, at most 1" }, hit.score.toFixed(2)),
  );
}
