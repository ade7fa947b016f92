// Navigation: show the page of the address.
"use strict";

let opened = false;

async function route() {
  const [kind, ...rest] = location.hash.slice(1).split("/");
  if (kind === "main") return main.focus(); // the link that skips the header
  peek.hidden = true;
  const mine = (visit += 1);
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.dataset.page === (kind === "graph" ? "graph" : kind === "" || kind === "videos" ? "videos" : "");
    if (own) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (kind !== "search") question.value = "";
  try {
    if (kind === "video") {
      const [id, time] = rest.join("/").split("@");
      await showVideo(decodeURIComponent(id), time === undefined ? undefined : Number(time));
    } else if (kind === "search") await showFound(decodeURIComponent(rest.join("/")));
    else if (kind === "graph") await showMap(...rest.map(decodeURIComponent));
    else if (kind === "compare") await showCompared(...rest.map(decodeURIComponent));
    else {
      leave();
      leave = () => {};
      showOverview();
    }
  } catch (error) {
    if (mine === visit) show("", make("p", { role: "alert" }, error.message));
  }
  if (mine !== visit) return;
  if (opened) window.scrollTo(0, main.querySelector(".list") ? scrolled : 0);
  if (opened && !main.contains(document.activeElement) && document.activeElement !== question) main.focus({ preventScroll: true });
  opened = true;
}

document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (question.value.trim()) location.hash = `search/${part(question.value.trim())}`;
});
window.addEventListener("hashchange", route);
ask("overview")
  .then((found) => {
    keepOverview(found);
    return route();
  })
  .catch((error) => show("", make("p", { role: "alert" }, error.message)));
