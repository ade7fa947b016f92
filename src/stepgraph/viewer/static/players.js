// Players: of a video file, of YouTube where the user allowed it, and of places in many videos one
// after the other.
"use strict";

function playerOf(video) {
  if (video.plays) return filePlayer(video.src ?? `media/${part(video.id)}`, video.sound);
  return video.youtube ? youtubePlayer(video.youtube) : null;
}

function filePlayer(src, sound) {
  const element = make(sound ? "audio" : "video", { controls: "", preload: "metadata", playsinline: "", "aria-label": sound ? "the sound" : "the video", src });
  const unknown = () => element.replaceWith(make("p", { class: "empty" }, "This browser cannot play the file. The timeline and the steps still work."));
  element.addEventListener("error", unknown, { once: true });
  let wanted = 0;
  let ready = false; // until its length is known, a player stays at 0
  const begin = () => {
    ready = true;
    element.currentTime = wanted;
  };
  element.addEventListener("loadedmetadata", begin, { once: true });
  return {
    element,
    time: () => (ready && !element.seeking ? element.currentTime : wanted),
    paused: () => element.paused,
    jump: (to) => {
      wanted = to;
      if (ready) element.currentTime = to;
    },
    play: () => element.play().catch(() => {}), // it was paused before it started
    pause: () => element.pause(),
    failed: () => element.error !== null,
    listen: (notify) => ["timeupdate", "seeked", "ended", "error"].forEach((name) => element.addEventListener(name, notify)),
  };
}

function youtubePlayer(address) {
  const origin = new URL(address).origin;
  const sender = location.origin === "null" ? "" : `&origin=${part(location.origin)}`;
  const element = make("iframe", {
    src: `${address}?enablejsapi=1&playsinline=1&rel=0${sender}`,
    title: "the video in the YouTube player",
    allow: "autoplay; fullscreen",
    referrerpolicy: "origin",
  });
  const listeners = [];
  let [now, paused, ready] = [0, true, false];
  const send = (content) => element.contentWindow?.postMessage(JSON.stringify(content), origin);
  const command = (func, ...args) => send({ event: "command", func, args });
  element.addEventListener("load", () => send({ event: "listening" }));
  const receive = (event) => {
    if (event.source !== element.contentWindow || event.origin !== origin) return;
    let message = null;
    try {
      message = JSON.parse(event.data);
    } catch {
      return;
    }
    if (!ready) {
      ready = true;
      if (now) command("seekTo", now, true);
    }
    if (typeof message?.info?.currentTime === "number") now = message.info.currentTime;
    if (typeof message?.info?.playerState === "number") paused = message.info.playerState !== 1;
    listeners.forEach((notify) => notify());
  };
  window.addEventListener("message", receive);
  return {
    element,
    time: () => now,
    paused: () => paused,
    jump: (to) => {
      now = to;
      if (ready) command("seekTo", to, true);
    },
    play: () => command("playVideo"),
    pause: () => command("pauseVideo"),
    listen: (notify) => listeners.push(notify),
    gone: () => window.removeEventListener("message", receive),
  };
}

// Places in videos: a list to choose from, and a player that plays one after the other.
// A place is {video, start, end, words}.
function placesOf(places) {
  const stage = make("div", { class: "stage" });
  const playing = places.filter((one) => one.video.plays || one.video.youtube);
  let [player, of, at, going] = [null, null, -1, false];
  const items = places.map((place) => {
    const step = place.video.steps.findIndex(([start, end]) => start <= place.start && place.start < end);
    const times = `${clock(place.start)} – ${clock(place.end)}`;
    return make(
      "a",
      { href: addressOf(place.video.id, place.start), class: "place" },
      thumb(place.video, step) ?? make("span", { class: "thumb none" }),
      make(
        "span",
        { class: "cut" },
        place.video.id,
        make("span", { class: "words" }, times, place.words ? ` “${place.words}”` : ""),
      ),
    );
  });
  const mark = () => {
    items.forEach((item) => item.removeAttribute("aria-current"));
    if (at >= 0) items[places.indexOf(playing[at])].setAttribute("aria-current", "true");
    control.textContent = going ? "Stop" : "Play all";
  };
  const stop = () => {
    going = false;
    player?.pause();
    mark();
  };
  const go = (next) => {
    if (next >= playing.length) return stop();
    at = next;
    const place = playing[at];
    if (of !== place.video) {
      player?.pause();
      player?.gone?.();
      player = playerOf(place.video);
      player.listen(follow);
      of = place.video;
      stage.replaceChildren(player.element, caption);
    }
    if (player.failed?.()) return go(next + 1);
    caption.replaceChildren(dot(place.keystep ?? ""), ` ${place.video.id} · ${at + 1} of ${playing.length}`);
    player.jump(place.start);
    player.play();
    mark();
  };
  const caption = make("p", { class: "quiet", "aria-live": "polite" });
  const follow = () => {
    const end = Math.min(playing[at].end, of.duration - 0.3); // files are a little shorter than their stated duration
    if (going && (player.failed?.() || player.time() >= end)) go(at + 1);
  };
  const control = button("Play all", () => {
    if (going) return stop();
    going = true;
    go(0);
  });
  const most = 200;
  const list = make("ol", { class: "places" }, ...items.slice(0, most).map((one) => make("li", {}, one)));
  const more = button(`Show ${places.length - most} more`, () => {
    list.append(...items.slice(most).map((one) => make("li", {}, one)));
    more.remove();
  });
  const tools = make("div", { class: "tools" }, playing.length ? control : null);
  const none = make("p", { class: "quiet" }, "There are no video files to play. The links still work.");
  return {
    parts: [playing.length ? tools : none, stage, list, places.length > most ? more : null],
    gone: () => {
      stop();
      player?.gone?.();
    },
  };
}
