"""How long the page takes from a key press to the redrawn tree, in Chromium.

    pip install -e '.[dev]'
    python experiments/page_time.py models/hu hu-ud-dev.conllu --words 30

The page parses the first sentence of the given length; then words are made the root in turn, and each time the page
parses the sentence again with this constraint. Prints the median and the largest time in milliseconds, up to the frame
in which the new tree is painted.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from scripting import positive, run_script

from mh4.cli.bench.serving import serving
from mh4.data.conllu import read_conllu

TIMES = r"""() => {
  window.times = [];
  addEventListener("keydown", (event) => { window.pressed = event.timeStamp; }, true);
  new MutationObserver(() => {
    const pressed = window.pressed;
    if (!/^\d+ ms$/.test(document.querySelector("#status").textContent)) return;
    requestAnimationFrame(() => setTimeout(() => window.times.push(performance.now() - pressed)));
  }).observe(document.querySelector("#status"), { childList: true, characterData: true, subtree: true });
}"""


def measure(model: Path, forms: tuple[str, ...], presses: int) -> list[float]:
    """Milliseconds from each key press to the new tree."""
    with serving(model, "cpu", None) as port, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto(f"http://127.0.0.1:{port}/")
        page.fill("#text", " ".join(forms))
        page.click("button.primary")
        page.wait_for_selector("sentence-tree .word")
        page.evaluate(TIMES)
        while page.evaluate("document.activeElement.tagName") != "SENTENCE-TREE":
            page.keyboard.press("Tab")
        page.keyboard.press("Home")
        for i in range(presses):
            page.keyboard.press("ArrowRight" if i % len(forms) < len(forms) - 1 else "Home")
            page.evaluate("document.querySelector('#status').textContent = ''")
            page.keyboard.press("r")
            while page.evaluate("window.times.length") <= i:
                time.sleep(0.2)  # more frequent polling would keep the page busy
        times: list[float] = page.evaluate("window.times")
        browser.close()
    return times


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--words", type=positive, default=30)
    parser.add_argument("--presses", type=positive, default=40)
    arguments = parser.parse_args()
    forms = next((one.forms for one in read_conllu(arguments.treebank) if len(one) == arguments.words), None)
    if forms is None:
        raise SystemExit(f"{arguments.treebank}: no sentence has {arguments.words} words")
    times = measure(arguments.model, forms, arguments.presses)[5:]  # the first presses include compilation
    print(f"median {statistics.median(times):.1f} ms, largest {max(times):.1f} ms of {len(times)}")


if __name__ == "__main__":
    raise SystemExit(run_script(main))
