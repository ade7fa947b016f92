// Lists of any length.  In a long list, only rows near the visible ones exist.  Gaps of about the same
// height replace the others and hold their words as plain text, so that the browser can find them.
"use strict";

const PIECE = 50; // rows that are made together
const SHORT = 200; // rows that are made at the beginning
const REST = 8; // frames without a change after which scrolling has ended

// build(item) makes a row; words(item) returns its text.
function growing(list, build, words) {
  let pieces = []; // items of each piece, and its rows or the gap in their place
  let pieceOf = new Map(); // number of the piece of each item
  const waiting = new Set(); // visible gaps, or nearly visible ones
  let resting = 0;
  const grow = (piece) => {
    if (!piece?.gap) return;
    near.unobserve(piece.gap);
    waiting.delete(piece.gap);
    piece.rows = piece.items.map(build);
    piece.gap.replaceWith(...piece.rows);
    piece.gap = null;
  };
  // Text of a gap in the middle, where the browser's search led, stays in the middle.
  const settle = () => {
    const box = list.getBoundingClientRect();
    const middle = box.top + box.height / 2;
    for (const gap of [...waiting]) {
      const piece = pieces[gap.dataset.piece];
      const at = Math.floor((middle - gap.getBoundingClientRect().top) / (gap.offsetHeight / piece.items.length));
      grow(piece);
      if (list.scrollTop > 0) centreIn(list, piece.rows[at]);
    }
  };
  // A change would end a smooth scroll too early.  A slow machine draws few frames a second.
  const rest = (_, frames = REST) => {
    cancelAnimationFrame(resting);
    resting = requestAnimationFrame(frames ? () => rest(_, frames - 1) : settle);
  };
  const see = ({ isIntersecting, target, boundingClientRect: gap }) => {
    const box = list.getBoundingClientRect();
    const seen = gap.bottom > box.top && gap.top < box.bottom;
    if (!isIntersecting) waiting.delete(target);
    else if (seen) waiting.add(target);
    else grow(pieces[target.dataset.piece]);
    if (seen) rest();
  };
  const near = new IntersectionObserver((entries) => entries.forEach(see), { root: list, rootMargin: "600px 0px" });
  list.addEventListener("scroll", rest, { passive: true });
  // At once: rows that replace gaps during a smooth scroll would move its target.
  list.addEventListener("keydown", (event) => {
    if (!["Home", "End"].includes(event.key) || event.ctrlKey || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    if (event.key === "End") pieces.slice(-2).forEach(grow);
    list.scrollTop = event.key === "Home" ? 0 : list.scrollHeight;
  });
  return {
    // Show these items only.
    fill: (items) => {
      near.disconnect();
      waiting.clear();
      [pieces, pieceOf] = [[], new Map()];
      for (let at = 0; at < items.length; at += PIECE) {
        const some = items.slice(at, at + PIECE);
        const text = some.map((item) => words(item).replace(/\s+/g, " ")).join("\n");
        const gap = make("li", { class: "gap", "data-piece": String(pieces.length) }, text);
        gap.style.setProperty("--rows", some.length);
        some.forEach((item) => pieceOf.set(item, pieces.length));
        pieces.push({ items: some, rows: [], gap });
      }
      list.replaceChildren(...pieces.map((piece) => piece.gap));
      pieces.slice(0, items.length > SHORT ? 1 : SHORT).forEach(grow);
      pieces.slice(1).forEach((piece) => piece.gap && near.observe(piece.gap));
    },
    // Return the row of an item if it exists; with anyway, make it and its neighbours first.
    row: (item, anyway = false) => {
      const at = pieceOf.get(item);
      if (anyway) pieces.slice(Math.max(0, at - 1), at + 2).forEach(grow);
      const piece = pieces[at];
      return piece?.rows[piece.items.indexOf(item)];
    },
  };
}

// Scroll only this list, until an element is in its middle.
function centreIn(list, one) {
  if (!one?.isConnected) return;
  const [inside, around] = [one.getBoundingClientRect(), list.getBoundingClientRect()];
  list.scrollTop += inside.top - around.top - (list.clientHeight - inside.height) / 2;
}
