// What is wrong with what a page shows, and what has the focus: see seeing.py.
({
  flaws() {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const over = (top, below) => {
      const mixed = [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
      return [...mixed, 1];
    };
    const light = ([r, g, b]) => {
      const linear = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const ground = (element) => {
      const behind = [];
      for (let one = element; one; one = one.parentElement) {
        const rect = one.parentElement?.closest("svg") && one.querySelector?.(":scope > rect:not(.hue)");
        behind.push(rgba(rect ? getComputedStyle(rect).fill : getComputedStyle(one).backgroundColor));
      }
      return behind.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    };
    const seen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    const name = (element) =>
      element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.textContent.trim() || element.title;
    const flaws = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const text = walk.currentNode.textContent.trim();
      const element = walk.currentNode.parentElement;
      if (!text || ["TITLE", "NOSCRIPT", "OPTION"].includes(element.tagName.toUpperCase()) || !seen(element)) continue;
      const style = getComputedStyle(element);
      const below = ground(element);
      const [one, other] = [light(over(rgba(element.closest("svg") ? style.fill : style.color), below)), light(below)];
      const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      if (ratio < (large ? 3 : 4.5)) flaws.push(`contrast ${ratio.toFixed(2)}: ${text.slice(0, 40)}`);
    }
    for (const one of document.querySelectorAll("a[href], button, input, select, video, iframe, [tabindex='0']")) {
      if (seen(one) && !name(one)) flaws.push(`no name: ${one.outerHTML.slice(0, 80)}`);
      if (one.tabIndex > 0) flaws.push(`tabindex: ${one.outerHTML.slice(0, 80)}`);
    }
    for (const one of document.querySelectorAll("img:not([alt])")) flaws.push(`no alt: ${one.src}`);
    const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
    if (new Set(ids).size < ids.length) flaws.push("an id is used twice");
    const levels = [...document.querySelectorAll("h1, h2, h3")].map((one) => Number(one.tagName[1]));
    if (levels[0] !== 1 || levels.some((level, at) => at && level > levels[at - 1] + 1)) flaws.push(`headings: ${levels}`);
    if (document.documentElement.scrollWidth > window.innerWidth) flaws.push("it must be scrolled sideways");
    return flaws;
  },

  focused() {
    const one = document.activeElement;
    const style = getComputedStyle(one);
    const rect = one.querySelector?.(":scope > rect:not(.hue)");
    const seen = style.outlineStyle !== "none" || (rect && parseFloat(getComputedStyle(rect).strokeWidth) >= 3);
    window.before ??= null;
    const back = window.before && window.before.isConnected &&
      Boolean(window.before.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING) && one !== document.body;
    window.before = one;
    if (one === document.body) return ["BODY", true, false];
    return [one.getAttribute("aria-label") || one.textContent.trim().slice(0, 30) || one.tagName, Boolean(seen), back];
  },
})
