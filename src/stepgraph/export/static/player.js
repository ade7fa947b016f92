"use strict";
/* The film of one card: goes where it is told and tells where it is.
   `show` is called when the moment changes, `place` at every frame while it runs. */
const openFilm = (() => {
  let running = null; // one at a time: two voices at once are no use to anyone

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
    const tell = () => show(film.currentTime);
    // Some web servers hand out a file only as a whole; a browser cannot jump in it then.
    const jumps = () => film.readyState === 0 || (film.seekable.length > 0 && film.seekable.end(0) > 0);
    const film = el("video", {
      src: video.src, controls: "", preload: "metadata", playsinline: "", "aria-label": `video ${video.id}`,
      onplay: () => {
        if (running && running !== film) running.pause();
        running = film;
        follow();
      },
      ontimeupdate: tell, onseeking: tell, onpause: tell,
      onloadedmetadata: () => {
        if (!jumps()) box.append(el("p", { class: "quiet" }, "This web server does not let a browser jump within a video. Open the page from disk, or serve it with one that answers range requests."));
      },
      onerror: () => {
        broken = true;
        box.replaceChildren(el("p", { class: "empty", role: "status" },
          el("span", {}, "This video cannot be played: ", el("bdi", {}, named(video.src)), " is missing, damaged or of a kind that this browser does not know.")));
      },
    });
    const box = el("div", { class: "film" }, film);
    film.currentTime = start;
    return {
      box,
      works: () => !broken,
      runs: () => !broken && !film.paused && !film.ended,
      seek: (time) => { if (!broken && jumps()) film.currentTime = time; },
      // What keeps a film from playing is told by its error event.
      toggle: () => (film.paused || film.ended ? film.play().catch(() => {}) : film.pause()),
    };
  };
})();
