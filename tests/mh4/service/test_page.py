"""The web page in a real browser."""

import os
import re
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from serving import running

import mh4
from mh4.data.document import Document
from mh4.service.served_models import ServedModels

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

TEXT = "Te nofe hivon mihevode takomero. Kve yeni zafante."
SIZE = {"width": 1200, "height": 800}


@pytest.fixture(scope="module")
def models(text_model, annotating_model):
    return ServedModels([f"ulvari={text_model}", f"tags={annotating_model}"])


@pytest.fixture(scope="module")
def server(models):
    with running(models) as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    quiet = ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, server):
    """Open the page; at the end, check that it logged no errors and contacted no other host."""
    context = browser.new_context(viewport=SIZE, accept_downloads=True)
    page = context.new_page()
    told, asked = [], []
    page.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.told = told
    page.home = f"http://127.0.0.1:{server.port}/"
    page.goto(page.home)
    yield page
    assert told == []
    assert {re.match(r"\w+://[^/]+/|blob:|data:", url)[0] for url in asked} <= {page.home, "blob:"}
    context.close()


def parse(page, text=TEXT, model="ulvari"):
    """Parse a text and return its first tree."""
    playwright.expect(page.locator("#model option")).to_have_count(2)
    page.select_option("#model", model)
    page.fill("#text", text)
    answered(page, lambda: page.click("button.primary"), r"^\d+ words, \d+ ms$")
    return page.locator("sentence-tree").first


def answered(page, act, status):
    """Perform an action that asks the server, and wait until its answer is shown: an earlier one may still be there."""
    page.evaluate("document.querySelector('#status').textContent = ''")
    with page.expect_response("**/process"):
        act()
    playwright.expect(page.locator("#status")).to_have_text(re.compile(status))


def heads(tree):
    """Return {dependent: head} for the arcs that are drawn."""
    found = tree.locator("g[data-dependent]").evaluate_all("all => all.map(g => [g.dataset.dependent, g.dataset.head])")
    return {int(dependent): int(head) for dependent, head in found}


def classes(tree, word):
    return (tree.locator(f'g[data-dependent="{word}"]').get_attribute("class") or "").split()


def word(tree, number):
    return tree.locator(f'.word[data-word="{number}"]')


def choose(page, act):
    """Perform an action that triggers a new parse, and wait for its answer."""
    answered(page, act, r"^\d+ ms$")


@contextmanager
def held_answers(page):
    """Hold requests to parse back until the end of the block."""
    held = []
    page.route("**/process", lambda route: held.append(route))
    yield
    page.unroute("**/process")
    for route in held:
        with suppress(playwright.Error):  # the page has given the request up
            route.continue_()


def drawn_as_kept(tree):
    return {d: head for d, head in heads(tree).items() if "kept" in classes(tree, d)}


def another_head(tree, dependent):
    """Return a head that the user could choose instead: not the present one, the word itself or a descendant."""
    found = heads(tree)

    def below(node):
        while node:
            if node == dependent:
                return True
            node = found[node]
        return False

    return next(h for h in sorted(found) if h != found[dependent] and not below(h))


def test_text_becomes_trees(page, text_model):
    parse(page)
    trees = page.locator("sentence-tree")
    expected = mh4.load(text_model)(TEXT)
    assert trees.count() == len(expected)
    for i, sentence in enumerate(expected):
        assert trees.nth(i).locator(".form").all_text_contents() == list(sentence.forms)
        assert heads(trees.nth(i)) == dict(enumerate(sentence.heads.tolist(), start=1))
    assert re.search(rf"^{sum(map(len, expected))} words, \d+ ms$", page.inner_text("#status"))


def test_arcs_are_as_strong_as_their_confidence(page, text_model):
    tree = parse(page)
    sentence = mh4.load(text_model)(TEXT, confidence=True)[0]
    doubtful = [one for one in sentence if one.head_confidence < 0.9]
    assert doubtful
    for one in sentence:
        opacity = tree.locator(f'g[data-dependent="{one.id}"] .arc').evaluate("arc => Number(arc.style.opacity || 1)")
        expected = 0.35 + 0.65 * one.head_confidence if one in doubtful else 1
        assert opacity == pytest.approx(expected, abs=0.01)
        notes = word(tree, one.id).locator(".note").all_text_contents()
        assert len(notes) == (one in doubtful)
        if notes:
            assert abs(float(notes[0].rstrip("%")) - 100 * one.head_confidence) < 0.6
    word(tree, doubtful[0].id).click()
    (other, _), *_ = doubtful[0].alternatives
    name = "the root" if other == 0 else sentence[other - 1].form
    assert tree.locator("p").inner_text().endswith(f"next best: {name}")
    assert tree.locator(".other").count() == 1


@pytest.mark.parametrize("way", ["click", "drag"])
def test_a_chosen_head_is_kept_exactly_and_taken_back(page, text_model, way):
    tree = parse(page)
    before = heads(tree)
    head = another_head(tree, 2)

    def act():
        if way == "click":
            word(tree, 2).click()
            word(tree, head).click()
        else:
            word(tree, 2).drag_to(word(tree, head))

    choose(page, act)
    sentence = mh4.load(text_model).cut(TEXT)[0]
    given = sentence.replace(heads=[-1, head, *[-1] * (len(sentence) - 2)])
    expected = mh4.load(text_model)(given, keep_heads=True)
    after = heads(tree)
    assert after == dict(enumerate(expected.heads.tolist(), start=1))
    assert after[2] == head
    assert "kept" in classes(tree, 2)
    for d in before:
        if before[d] != after[d]:
            assert "changed" in classes(tree, d)
    page.keyboard.press("Control+z")
    assert heads(tree) == before
    assert "kept" not in classes(tree, 2)
    assert page.is_disabled("#undo")


def test_an_answer_under_way_does_not_bring_back_what_was_undone(page):
    tree = parse(page)
    before = heads(tree)
    head = another_head(tree, 2)
    word(tree, 2).click()
    choose(page, word(tree, head).click)
    with held_answers(page):
        word(tree, head).click()
        with page.expect_request("**/process"):
            word(tree, head).click()  # the same word twice: the root
        page.keyboard.press("Control+z")
    page.wait_for_timeout(500)
    assert heads(tree) == before


@pytest.mark.parametrize("same", [True, False])
def test_a_choice_does_not_discard_one_under_way(page, same):
    parse(page)
    first, second = page.locator("sentence-tree").first, page.locator("sentence-tree").last
    before = heads(first), heads(second)
    choices = [(first, 2, another_head(first, 2)), (first if same else second, 1, 0)]
    with held_answers(page):
        for tree, dependent, head in choices:
            word(tree, dependent).click()
            word(tree, head or dependent).click()
    for tree in (first, second):
        expected = {dependent: head for own, dependent, head in choices if own is tree}
        for dependent in expected:
            playwright.expect(tree.locator(f'g.kept[data-dependent="{dependent}"]')).to_have_count(1)
        assert drawn_as_kept(tree) == expected
    for _ in choices:
        page.keyboard.press("Control+z")
    assert (heads(first), heads(second)) == before


def test_a_new_parse_abandons_choices_under_way(page):
    tree = parse(page)
    with held_answers(page):
        word(tree, 1).click()
        word(tree, 1).click()
    with held_answers(page), page.expect_request("**/process"):
        page.click("button.primary")
        word(tree, 2).click()
        word(tree, 2).click()
    playwright.expect(page.locator("#status")).to_have_text(re.compile(r"^\d+ words, \d+ ms$"))
    page.wait_for_timeout(300)
    assert drawn_as_kept(page.locator("sentence-tree").first) == {}
    assert page.is_disabled("#undo")


def test_the_same_word_twice_is_the_root_and_escape_takes_back(page):
    tree = parse(page)
    other = next(d for d, head in heads(tree).items() if head != 0)
    word(tree, other).click()
    assert "selected" in word(tree, other).get_attribute("class")
    page.keyboard.press("Escape")
    assert tree.locator(".selected").count() == 0
    word(tree, other).click()
    choose(page, word(tree, other).click)
    assert heads(tree)[other] == 0
    assert list(heads(tree).values()).count(0) == 1


def test_the_last_choice_wins_over_those_that_it_forbids(page):
    tree = parse(page)
    for dependent in (2, 4):  # two roots
        word(tree, dependent).click()
        choose(page, word(tree, dependent).click)
    assert heads(tree)[4] == 0
    assert "kept" in classes(tree, 4)
    assert "kept" not in classes(tree, 2)
    for dependent, head in ((2, 3), (1, 2), (3, 1)):  # a cycle
        word(tree, dependent).click()
        choose(page, word(tree, head).click)
    assert {d: heads(tree)[d] for d in (1, 3, 4)} == {1: 2, 3: 1, 4: 0}
    assert [d for d in heads(tree) if "kept" in classes(tree, d)] == [1, 3, 4]


def test_keyboard_alone(page):
    tree = parse(page)
    head = another_head(tree, 2)
    page.focus("#text")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SENTENCE-TREE":
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("Home")
    for _ in range(head - 1):
        page.keyboard.press("ArrowRight")
    choose(page, lambda: page.keyboard.press("Enter"))
    assert heads(tree)[2] == head
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    choose(page, lambda: page.keyboard.press("Delete"))
    assert "kept" not in classes(tree, 2)
    choose(page, lambda: page.keyboard.press("r"))
    assert heads(tree)[2] == 0


def test_downloads(page, text_model):
    parse(page)
    with page.expect_download() as download:
        page.click("#conllu")
    found = Document.from_conllu(Path(download.value.path()).read_text(encoding="utf-8"))
    expected = mh4.load(text_model)(TEXT)
    assert download.value.suggested_filename == "trees.conllu"
    for one, other in zip(found, expected, strict=True):
        assert (one.forms, one.heads.tolist(), one.relations) == (other.forms, other.heads.tolist(), other.relations)
        assert (one.text, one.misc) == (other.text, other.misc)
    with page.expect_download() as download:
        page.click("#svg")
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<svg")


def test_tags_stay_when_a_head_is_chosen(page, annotating_model):
    tree = parse(page, "Te nofe hivon", model="tags")
    expected = mh4.load(annotating_model)(["Te", "nofe", "hivon"])
    word(tree, 1).click()
    details = tree.locator("p").inner_text()
    assert details.startswith(f"Te {expected.lemmas[0]} · {expected.upos[0]}")
    choose(page, word(tree, 1).click)
    word(tree, 1).hover()
    assert tree.locator("p").inner_text().startswith(f"Te {expected.lemmas[0]} · {expected.upos[0]}")


def test_a_link_holds_the_text(page, browser, server):
    parse(page, "Zvai te. Kve <b>yeni</b> & x.", model="ulvari")
    for copied, said in (("Promise.reject(Error())", "the address bar has the link"), ("0", "link copied")):
        page.evaluate(f"() => {{ navigator.clipboard.writeText = async () => {copied}; }}")
        page.click("#link")
        playwright.expect(page.locator("#status")).to_have_text(said)
    playwright.expect(page).to_have_url(re.compile("#.+text="))
    again = browser.new_page()
    again.goto(page.url)
    again.wait_for_selector("sentence-tree .word")
    assert again.input_value("#text") == "Zvai te. Kve <b>yeni</b> & x."
    assert again.locator("article b").count() == 0
    again.close()


def test_a_link_pasted_where_the_page_is_open_is_followed(page):
    tree = parse(page, "Te nofe", model="tags")
    choose(page, lambda: [word(tree, 1).click(), word(tree, 1).click()])
    page.click("#link")
    page.wait_for_timeout(300)
    assert drawn_as_kept(tree) == {1: 0}  # not parsed again
    page.goto(f"{page.home}#model=ulvari&text=Kve+yeni.")
    playwright.expect(page.locator(".form")).to_have_text(["Kve", "yeni", "."])
    assert (page.input_value("#text"), page.input_value("#model")) == ("Kve yeni.", "ulvari")


def test_a_link_with_an_unknown_model(page):
    page.goto(page.home + "#model=toString&text=Kve+yeni.")
    page.reload()
    playwright.expect(page.locator(".form")).to_have_text(["Kve", "yeni", "."])
    assert page.input_value("#model") == "ulvari"


def test_what_is_wrong_is_told_beside_the_buttons(page, server):
    parse(page)
    page.fill("#text", "a " * 1001)
    page.select_option("#model", "tags")
    page.click("button.primary")
    page.wait_for_selector("#status.problem")
    assert "1001 words" in page.inner_text("#status")
    assert len(page.told) == 1  # the browser logs each response with status 400
    page.told.clear()


def test_text_from_right_to_left(page):
    tree = parse(page, "\u05d4\u05db\u05dc\u05d1 \u05e0\u05d1\u05d7 \u05d0\u05ea\u05de\u05d5\u05dc", model="tags")
    boxes = [word(tree, d).bounding_box()["x"] for d in (1, 2, 3)]
    assert boxes == sorted(boxes, reverse=True)
    page.focus("#text")
    word(tree, 1).focus()
    page.keyboard.press("ArrowLeft")
    assert tree.evaluate("tree => tree.shadowRoot.activeElement.dataset.word") == "2"
    tree = parse(page, 100 * "\u05d4\u05db\u05dc\u05d1 ", model="tags")
    assert tree.locator(".word").count() == 100  # not the tree before
    box = word(tree, 1).bounding_box()
    assert SIZE["width"] / 2 < box["x"] < SIZE["width"] - box["width"]  # the rest is to the left, outside the frame


def test_a_long_sentence_scrolls_within_its_frame(page):
    tree = parse(page, " ".join(f"word{i}" for i in range(100)), model="tags")
    assert tree.locator(".word").count() == 100
    sizes = tree.evaluate(
        "tree => { const s = tree.shadowRoot.querySelector('.scroll'); return [s.scrollWidth, s.clientWidth]; }"
    )
    assert sizes[0] > 3 * sizes[1]
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZE["width"]


@pytest.mark.parametrize("mirrored", ["false", "true"])
def test_arcs_to_many_dependents_start_at_their_head(page, mirrored):
    arcs = [{"head": 5 if d != 5 else 0, "dependent": d, "label": ""} for d in range(1, 10)]
    lay_out = f"import('./page/layout.js').then(it => it.layOut(Array(10).fill(12), {arcs}, () => 0, {mirrored}))"
    layout = page.evaluate(lay_out)
    for arc in layout["arcs"]:
        foot = float(arc["path"][1:].split()[0])
        nearest = min(range(1, 10), key=lambda word: abs(layout["centres"][word] - foot))
        assert nearest == (arc["head"] or arc["dependent"])


def test_dark_and_light(page):
    parse(page)
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground, ink = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink)]
        colours.append(light)
        if folder := os.environ.get("MH4_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/page-{scheme}.png")
    assert colours[0][0] > 600 > colours[0][1]
    assert colours[1][0] < 150 < colours[1][1]
