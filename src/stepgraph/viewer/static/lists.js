// Lists of any length.  Of a long one, only rows near what is seen exist.  Gaps stand for the
// others, about as high, with their words as plain text, so that the browser finds those, too.
"use strict";

const PIECE = 50; // rows that come and are missing together
const SHORT = 200; // rows that are there from the beginning

// build(item) makes a row; words(item) is what is written in it.
function growing(list, build, words) {
  let pieces = []; // of each its items, and its rows or the gap that stands for them
  let pieceOf = new Map();
  const grow = (piece) => {
    if (!piece.gap) return;
    near.unobserve(piece.gap);
    piece.rows = piece.items.map(build);
    piece.gap.replaceWith(...piece.rows);
    piece.gap = null;
  };
  const seen = ({ isIntersecting, target, boundingClientRect: box }) => {
    if (!isIntersecting) return;
    const piece = pieces[target.dataset.piece];
    const middle = list.getBoundingClientRect().top + list.clientHeight / 2;
    grow(piece);
    // What stood in the middle as plain text, where the browser found it or led, stays there.
    centreIn(list, piece.rows[Math.floor(((middle - box.top) * piece.rows.length) / box.height)]);
  };
  const near = new IntersectionObserver((entries) => entries.forEach(seen), { root: list, rootMargin: "600px 0px" });
  return {
    // Show some items and no others.
    fill: (items) => {
      near.disconnect();
      [pieces, pieceOf] = [[], new Map()];
      for (let at = 0; at < items.length; at += PIECE) {
        const some = items.slice(at, at + PIECE);
        const gap = make("li", { class: "gap", "data-piece": String(pieces.length) }, some.map((item) => words(item).replace(/\s+/g, " ")).join("\n"));
        gap.style.setProperty("--rows", some.length);
        pieces.push({ items: some, rows: [], gap });
        some.forEach((item) => pieceOf.set(item, pieces.at(-1)));
      }
      list.replaceChildren(...pieces.map((piece) => piece.gap));
      if (items.length <= SHORT) pieces.forEach(grow);
      else pieces.forEach((piece) => near.observe(piece.gap));
    },
    // The row of an item; of one that is far away only if it exists, or is to be made now.
    row: (item, anyway = false) => {
      const piece = pieceOf.get(item);
      if (piece && anyway) grow(piece);
      return piece?.rows[piece.items.indexOf(item)];
    },
  };
}

// Scroll a list, and nothing else, until something in it stands in its middle.
function centreIn(list, one) {
  if (!one?.isConnected) return;
  const [inside, around] = [one.getBoundingClientRect(), list.getBoundingClientRect()];
  list.scrollTop += inside.top - around.top - (list.clientHeight - inside.height) / 2;
}
