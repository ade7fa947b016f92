"""How the report looks: no broken word, no bare percentage, nothing too pale or far down."""

import pytest

from test_export_report import browser as browser
from test_export_report import kitchen, omelette, write
from test_export_report_video import clip as clip
from test_export_report_video import shown
from test_export_report_video import visit as visit

# Every text with what it stands on; transparent grounds let through what is behind them.
CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const owner = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || owner.closest("svg, script, option")) continue;
    if (!owner.checkVisibility() || !owner.getClientRects().length) continue;
    let ground = owner;
    const under = (one) => rgba(getComputedStyle(one).backgroundColor);
    while (ground && under(ground)[3] < 200) ground = ground.parentElement;
    const both = [rgba(getComputedStyle(owner).color), under(ground || document.body)];
    const [low, high] = both.map(light).sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) found.push(`${walk.currentNode.textContent.trim()}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""

# Words of the readout that stand in more than one line.
BROKEN = """() => {
  const found = [], range = document.createRange();
  const parts = ".readout li > bdi, .readout .done *, .lane > bdi";
  for (const part of document.querySelectorAll(parts)) {
    for (const text of part.childNodes) {
      if (text.nodeType !== Node.TEXT_NODE) continue;
      for (const word of text.textContent.matchAll(/[^\\s-]+/g)) {
        range.setStart(text, word.index); range.setEnd(text, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) found.push(word[0]);
      }
    }
  }
  return found;
}"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_and_no_word_is_broken(tmp_path, visit, clip, width, scheme):
    page, _, _ = shown(tmp_path, visit, clip, width=width, color_scheme=scheme)

    assert page.evaluate(CONTRASTS) == []
    assert page.evaluate(BROKEN) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
@pytest.mark.parametrize(("width", "most"), [(1280, 620), (390, 900)])
def test_videos_begin_on_the_first_screen(tmp_path, visit, width, most):
    write(tmp_path / "report.html")
    page = visit(tmp_path / "report.html", width=width)

    top = page.locator(".card").first.evaluate(
        "(one) => one.getBoundingClientRect().top + scrollY"
    )
    assert top < most


@pytest.mark.browser
def test_percentages_say_of_what_they_are(tmp_path, visit):
    write(tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    card = page.locator(".card").first

    assert card.locator(".lane.heads").inner_text().strip() == "accuracy"
    figures = card.locator(".lane > :last-child").all_inner_texts()
    assert [one for one in figures if "%" in one] == ["25.0\u00a0%", "75.0\u00a0%"]
    assert "%" not in card.locator(".card-head").inner_text()


@pytest.mark.browser
def test_a_legend_names_what_is_done_and_wrong_guesses_only_when_asked(tmp_path, visit):
    dataset, methods = kitchen(omelette())
    write(tmp_path / "report.html", dataset=dataset, methods=methods)
    page = visit(tmp_path / "report.html")
    legend = page.locator(".card", has_text="v1").locator(".legend")

    assert legend.locator("button").all_inner_texts()[-1] == "+ 1 not in the truth"
    before = legend.locator("button").count()
    legend.locator(".toggle").click()
    assert legend.locator("button").count() == before
    assert legend.locator(".other").count() == 1


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_film_that_has_not_come_yet_is_no_black_box(tmp_path, visit, clip, scheme):
    _, card, _ = shown(tmp_path, visit, clip, color_scheme=scheme)

    ground = card.locator("video").evaluate("(film) => getComputedStyle(film).backgroundColor")
    assert ground != "rgb(0, 0, 0)"
