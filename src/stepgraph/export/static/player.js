"use strict";
/* The video player of one card.
   It calls `show` when the time changes, and `place` at every frame while it plays. */
const openFilm = (() => {
  let running = null; // only one plays at a time

  function named(address) {
    try { return decodeURIComponent(address); } catch { return address; } // not UTF-8
  }

  return (el, video, start, { show, place }) => {
    let broken = false;
    const follow = () => {
      if (film.paused || film.ended) return;
      place(film.currentTime);
      requestAnimationFrame(follow);
    };
    const update = () => show(film.currentTime);
    // Some web servers send a file only as a whole; then a browser cannot jump in it.
    const jumps = () => film.readyState === 0 || (film.seekable.length > 0 && film.seekable.end(0) > 0);
    const film = el("video", {
      src: video.src, controls: "", preload: "metadata", playsinline: "", "aria-label": `video ${video.id}`,
      onplay: () => {
        if (running && running !== film) running.pause();
        running = film;
        follow();
      },
      ontimeupdate: update, onseeking: update, onpause: update,
      onloadedmetadata: () => {
        if (!jumps()) box.append(el("p", { class: "quiet" }, "This web server does not support jumps within a video. Open the page from disk, or use a server that supports range requests."));
      },
      onerror: () => {
        broken = true;
        box.replaceChildren(el("p", { class: "empty", role: "status" },
          el("span", {}, "This video cannot be played: ", el("bdi", {}, named(video.src)), " is missing, damaged or in a format that this browser does not support.")));
      },
    });
    const box = el("div", { class: "film" }, film);
    film.currentTime = start;
    return {
      box,
      works: () => !broken,
      runs: () => !broken && !film.paused && !film.ended,
      seek: (time) => { if (!broken && jumps()) film.currentTime = time; },
      // The error event reports why a film does not play.
      toggle: () => (film.paused || film.ended ? film.play().catch(() => {}) : film.pause()),
    };
  };
})();
