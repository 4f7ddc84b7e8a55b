"""The report: its structure by the standard library, its controls in a real browser."""

import base64
import functools
import itertools
import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans
from powermeans import PathRecorder, PowerKMeans

pytestmark = pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")

VOID = {"meta", "input", "link", "br", "img", "wbr"}
NASTY = ["<b>x</b>", "</script><script>alert(1)</script>", "{{data}}", '"quoted" & \u2028', "'"]
SHOWN = [name.replace("\u2028", "\\u2028") for name in NASTY]
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    np.repeat(np.eye(5)[:3] * 9, [20, 30, 40], axis=0) + RNG.normal(size=(90, 5)), columns=NASTY
)


class Page(HTMLParser):
    """Elements, text by section, and whether what is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.text, self.elements, self.open, self.words = text, [], [], {}
        self.data = self._section = ""
        self.feed(text)
        self.close()
        # JSON of no NaN, which browsers do not know.
        self.data = json.loads(self.data, parse_constant=lambda name: pytest.fail(name))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self._section = dict(attrs)["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"] and self.elements[-1][1].get("id") == "data":
            self.data += data
        elif "section" in self.open:
            self.words[self._section] = self.words.get(self._section, "") + data

    def attributes(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def columns(self):
        columns = self.data["scatter"]["columns"]
        return {one["name"]: floats(one["values"]) for one in columns}


def floats(encoded):
    return np.frombuffer(base64.b64decode(encoded["bytes"]), dtype=encoded["dtype"])


CHOICE = SimpleNamespace(
    table={
        "k": np.array([2, 3, 4]),
        "inertia": np.array([9.0, 2.0, 1.5]),
        "separation": np.array([0.1, 0.5, np.nan]),
        "separation_error": np.zeros(3),
    },
    recommended=3,
    agreement=0.75,
    decided_by="separation",
    is_clear=True,
    doubt="clusters overlap & touch",
    by_criterion={"separation": 3},
)


def page_of(folder, model, X, **options):
    written = powermeans.report(model, X, folder / "report.html", **options)
    return Page(written.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path, folder = PathRecorder(), tmp_path_factory.mktemp("report")
    model = PowerKMeans(3, random_state=0, effort="none", callback=path).fit(TABLE)
    about = {"title": "Shops & <customers>", "source": "shops.csv"}
    page_of(folder, model, TABLE, annealing=path, choice=CHOICE, **about)
    return folder / "report.html"


@pytest.fixture(scope="module")
def page(written):
    return Page(written.read_text(encoding="utf-8"))


@pytest.fixture
def report_of(tmp_path):
    return functools.partial(page_of, tmp_path)


def test_the_page_is_well_formed_and_loads_nothing(page):
    assert page.open == []
    ids = Counter(found["id"] for _, found in page.elements if "id" in found)
    assert max(ids.values()) == 1
    named = [(one["href"] or "").removeprefix("#") for one in page.attributes("a")]
    assert {*named, *(one["for"] for one in page.attributes("label"))} <= ids.keys()
    for _, attributes in page.elements:
        assert not {"src", "srcset", "data", "action", "poster"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search("https?://", page.text)
    (policy,) = (one for one in page.attributes("meta") if "http-equiv" in one)
    assert policy["content"].startswith("default-src 'none'")
    # Names of columns are shown as they are, and run nowhere.
    assert (len(page.attributes("script")), len(page.attributes("b"))) == (2, 0)
    assert all(name in page.words["means"] for name in NASTY[:3])


def test_the_data_of_the_page_are_those_given_in_a_section_for_each(page, report_of):
    names = list(page.columns)
    assert names == ["principal axis 1", "principal axis 2", *SHOWN]
    for name, values in zip(SHOWN, TABLE.to_numpy().T, strict=True):
        np.testing.assert_array_equal(page.columns[name], values)
    labels = np.frombuffer(base64.b64decode(page.data["scatter"]["labels"]), dtype="<u4")
    assert sorted(np.bincount(labels).tolist()) == [20, 30, 40]
    assert page.data["sizes"] == np.bincount(labels).tolist()
    ends = np.array(page.data["annealing"]["steps"][-1]["centers"])
    np.testing.assert_allclose(ends, np.array(page.data["scatter"]["centers"])[:, :2], rtol=1e-4)
    expected = "answer", "warnings", "clusters", "points", "means", "sure", "annealing", "run"
    assert tuple(page.words) == expected
    assert "90" in page.words["run"]
    assert "Recommended is k = 3; 75% of the criteria say so" in page.words["sure"]
    assert "separation_error" not in page.words["sure"]
    assert 'read_table("shops.csv", columns=["<b>x</b>", ' in page.words["run"]
    unclear = SimpleNamespace(**{**vars(CHOICE), "is_clear": False})
    model = PowerKMeans(3, random_state=0, effort="none").fit(TABLE)
    page = report_of(model, TABLE, choice=unclear)
    assert "There is no clear k: clusters overlap & touch. A guess is 3;" in page.words["sure"]
    assert "no number of clusters is clear, and 3 is a guess" in page.words["answer"]


def test_a_page_stays_small(report_of):
    """More points than are shown are sampled, and hundreds of clusters and columns are packed."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20_050, 8))
    page = report_of(PowerKMeans(3, random_state=0, effort="none").fit(points), points)
    assert "A sample of 10,000 of the 20,050 points" in page.words["points"]
    assert len(page.columns["principal axis 1"]) == 10_000
    assert len(page.text) < 2_000_000
    points, path = rng.normal(size=(3000, 400)), PathRecorder()
    model = PowerKMeans(300, effort="none", random_state=0, max_iter=20, callback=path)
    assert len(report_of(model.fit(points), points, annealing=path).text) < 2_000_000


@pytest.mark.parametrize(
    ("model", "points"),
    [
        (PowerKMeans(3), sparse.csr_matrix(TABLE.to_numpy())),
        (PowerKMeans(3, missing="observed"), np.where(np.eye(90, 5) == 1, np.nan, TABLE)),
        (PowerKMeans(1), TABLE),
        (PowerKMeans(2), TABLE.iloc[:, :1]),
        (PowerKMeans(2, divergence="cosine"), TABLE),
        *((kind(3), TABLE.to_numpy()) for kind in (
            SklearnKMeans, powermeans.KernelPowerKMeans, powermeans.SpectralClustering)),
        (powermeans.SphericalMixture(3), TABLE),
        (powermeans.MiniBatchPowerKMeans(3), TABLE.astype(np.float32)),
    ],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_every_kind_of_model_and_of_points_has_a_report(model, points, report_of):
    page = report_of(model.fit(points), points)
    assert page.open == []
    assert type(model).__name__ in page.words["run"]


@pytest.mark.parametrize("offset", [0.0, 1.7e9, 1e60])
def test_values_far_from_zero_stay_what_they_are(offset, report_of):
    times = offset + np.repeat([0.0, 60.0], 50) * max(1.0, offset / 1.7e9)
    times += np.random.default_rng(0).random(100)
    points = np.column_stack([times, np.repeat([95_131.0, 123_456.0], 50)])
    recorder = PathRecorder()
    model = PowerKMeans(2, random_state=0, effort="none", callback=recorder).fit(points)
    page = report_of(model, points, annealing=recorder)
    np.testing.assert_array_equal(np.transpose(list(page.columns.values())[:2]), points)
    centers = np.tile(model.cluster_centers_, 2)
    np.testing.assert_allclose(page.data["scatter"]["centers"], centers)
    ends = np.array(page.data["annealing"]["steps"][-1]["centers"])
    assert np.ptp(ends[:, 0]) == pytest.approx(np.ptp(centers[:, 0]), rel=1e-3)
    drawn = floats(page.data["annealing"]["points"]).reshape(-1, 2)
    np.testing.assert_array_equal(drawn, points)
    # Means have all their whole digits.
    wholes = [95_131, 123_456, *(centers[:, 0].astype(int) if offset == 1.7e9 else [])]
    assert all(str(whole) in page.words["means"] for whole in wholes)
    if offset == 1e60:
        assert "StandardScaler" in page.words["warnings"]


def test_a_page_of_scaled_points_has_means_and_values_in_the_units_of_the_data(report_of):
    noise = np.random.default_rng(0).normal(size=(60, 3))
    table = pd.DataFrame(noise + np.repeat([0, 7, 14], 20)[:, None])
    table = (table * [1.0, 1000.0, 10.0] + [5.0, 80_000.0, 0.0]).rename(columns="of {}".format)
    scalers = [StandardScaler().fit(table), MinMaxScaler((0, 10))]
    scaled = scalers[1].fit_transform(scalers[0].transform(table))
    points = pd.DataFrame(scaled, columns=table.columns)
    model = PowerKMeans(3, random_state=0).fit(points)
    page = report_of(model, points, scalers=scalers)
    assert "StandardScaler, then MinMaxScaler" in page.words["run"]
    means = table.groupby(model.labels_).mean()
    assert all(f"{mean:.0f}" in page.words["means"] for mean in means["of 1"])
    for name in table:
        np.testing.assert_allclose(page.columns[name], table[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.array(page.data["scatter"]["centers"])[:, 2:], means, rtol=1e-9)


def test_a_weight_of_three_says_what_three_copies_say(report_of):
    points, counts = TABLE.to_numpy(), np.random.default_rng(0).integers(1, 5, size=90)
    model = PowerKMeans(3, random_state=0).fit(points, sample_weight=counts)
    weighted = report_of(model, points, sample_weight=counts)
    copied = report_of(model, np.repeat(points, counts, axis=0))
    cells = re.compile(r'data-of="(?:share|clearly its own)">[^<]*|explained</dt><dd>[^<]*')
    assert len(cells.findall(weighted.text)) == 7
    assert cells.findall(weighted.text) == cells.findall(copied.text)
    assert weighted.words["means"] == copied.words["means"]
    assert "of the weight." in weighted.words["clusters"]
    assert "of the weight." not in copied.words["clusters"]
    assert "sample_weight=weights" in weighted.words["run"]
    page = report_of(model, points, sample_weight=np.where(model.labels_ == 1, 0.0, 1.0))
    assert "rows, which weigh nothing." in page.words["clusters"]
    assert "nan" not in page.words["means"]


def test_what_does_not_go_with_the_points_is_refused_and_no_file_is_left(tmp_path):
    model = PowerKMeans(3, random_state=0).fit(TABLE)
    for options, named in (
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"sample_weight": np.full(90, -1.0)}, "sample_weight"),
        ({"annealing": PathRecorder()}, "annealing"),
        ({"names": {3: "Nobody"}}, "names.* 3"),
        ({"row_numbers": [1]}, "row_numbers"),
        ({"feature_names": ["speed"]}, "feature_names.* 1 .* 5 "),
    ):
        with pytest.raises(ValueError, match=named):
            page_of(tmp_path, model, TABLE, **options)
    assert list(tmp_path.iterdir()) == []


# In a browser.


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def tab(browser, written, request):
    """The report, opened on a desktop or so wide; no error may have been said when it is closed."""
    viewport = {"width": getattr(request, "param", 1280), "height": 844}
    context = browser.new_context(viewport=viewport, offline=True, reduced_motion="reduce")
    opened, said, asked = context.new_page(), [], []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(written.as_uri())
    yield opened
    assert (said, asked) == ([], [written.as_uri()])
    context.close()


def expect(locator):
    return pytest.importorskip("playwright.sync_api").expect(locator)


def n_drawn(tab, canvas="scatter"):
    """How many pixels of a canvas are not empty, after what is to be drawn is drawn."""
    count = """async (id) => {
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const canvas = document.getElementById(id);
      const copy = new OffscreenCanvas(canvas.width, canvas.height)
        .getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const all = copy.getImageData(0, 0, canvas.width, canvas.height).data;
      let drawn = 0;
      for (let i = 3; i < all.length; i += 4) if (all[i]) drawn++;
      return drawn;
    }"""
    return int(tab.evaluate(count, canvas))


IS_NO_WIDER = "document.documentElement.scrollWidth <= innerWidth"


@pytest.mark.parametrize("tab", [1280, 390], ids=["desktop", "phone"], indirect=True)
def test_the_page_fits_the_screen_and_its_slider_moves_the_centers_to_the_result(tab):
    assert tab.evaluate(IS_NO_WIDER)
    is_within = "(one) => one.scrollWidth <= one.clientWidth"
    assert tab.eval_on_selector("#clusters .wide", is_within)
    nameless = """[...document.querySelectorAll("button, select, input, canvas")].filter((one) =>
      !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length)).length"""
    assert tab.evaluate(nameless) == 0
    assert tab.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length") == 0
    last = tab.locator("#sweep").get_attribute("max")
    assert tab.input_value("#sweep") == last
    result = tab.inner_text("#said")
    assert "the result, inertia" in result
    tab.focus("#sweep")
    tab.keyboard.press("Home")
    assert tab.inner_text("#said").startswith("sweep 1, power")
    assert n_drawn(tab, "ways") > 0
    tab.click("#play")
    assert tab.inner_text("#play") == "pause"
    expect(tab.locator("#play")).to_have_text("play", timeout=20_000)
    assert (tab.input_value("#sweep"), tab.inner_text("#said")) == (last, result)


def test_no_name_is_cut_on_a_desktop_and_a_link_to_a_folded_cluster_unfolds_it(browser, tmp_path):
    names = ["x" * 70, "many words " * 12, "snake_case_" * 9, *"abcdefghijklm"]
    table = pd.DataFrame(np.repeat(np.eye(16)[:13] * 9, 5, axis=0), columns=names)
    model = PowerKMeans.from_centers(table.drop_duplicates())
    powermeans.report(model, table, tmp_path / "long.html", names={1: "y" * 150})
    opened = browser.new_page(viewport={"width": 1280, "height": 844}, reduced_motion="reduce")
    opened.goto((tmp_path / "long.html").as_uri())
    cut = """[...document.querySelectorAll("h3, th, td, figcaption, .wide, p, #legend button")]
      .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
        && getComputedStyle(one).display !== "inline").map((one) => one.outerHTML)"""
    assert opened.evaluate(cut) == []
    assert opened.evaluate(IS_NO_WIDER)
    assert not opened.locator("#cluster-9").evaluate("(one) => one.open")
    opened.click('table.clusters a[href="#cluster-9"]')
    expect(opened.locator("#cluster-9 .charts")).to_be_visible()
    opened.close()


def test_clusters_are_hidden_and_shown_and_points_spread_by_zooming(tab):
    all_drawn, first = n_drawn(tab), tab.locator("#legend button").first
    first.click()
    assert first.get_attribute("aria-pressed") == "false"
    fewer = n_drawn(tab)
    tab.click("#none")
    assert 0 < n_drawn(tab) < fewer < all_drawn
    tab.click("#all")
    assert n_drawn(tab) == all_drawn
    for _ in range(8):
        tab.click("#in")
    assert n_drawn(tab) < all_drawn
    tab.click("#reset")
    assert n_drawn(tab) == all_drawn
    tab.select_option("#right", label=NASTY[0])
    assert tab.locator("#right option").count() == 2 + len(NASTY)
    assert n_drawn(tab) not in (0, all_drawn)


def test_the_scatter_is_worked_by_keyboard_pointed_at_and_zoomed_only_where_it_was_chosen(tab):
    tab.locator("#scatter").scroll_into_view_if_needed()
    before = n_drawn(tab)
    turn = """async () => document.getElementById("scatter").dispatchEvent(
      new WheelEvent("wheel", {deltaY: -900, cancelable: true}))"""
    assert tab.evaluate(turn)
    assert n_drawn(tab) == before
    tab.focus("#reset")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "scatter"
    for _ in range(8):
        tab.keyboard.press("+")
    assert n_drawn(tab) < before
    tab.keyboard.press("0")
    assert n_drawn(tab) == before
    told = []
    for key in "nnp":
        tab.keyboard.press(key)
        told.append(tab.inner_text("#tip"))
    assert told[0] == told[2] != told[1]
    row = int(told[0].partition("row ")[2].partition("\n")[0])
    assert told[0].startswith("cluster ")
    assert f"{NASTY[0]}: {TABLE.iloc[row - 1, 0]:.3g}"[:-1] in told[0]
    tab.keyboard.press("Escape")
    assert not tab.locator("#tip").is_visible()
    assert not tab.evaluate(turn)
    assert n_drawn(tab) != before
    tab.click("#reset")
    box = tab.locator("#scatter").bounding_box()
    for right, down in itertools.product(range(20), repeat=2):
        tab.mouse.move(box["x"] + box["width"] * right / 20, box["y"] + box["height"] * down / 20)
        if tab.locator("#tip").is_visible():
            break
    assert tab.inner_text("#tip").startswith("cluster ")


def test_dark_and_light_change_places_a_print_is_light_and_unfolded_and_code_is_copied(tab):
    paper = "getComputedStyle(document.body).backgroundColor"
    theme = "document.documentElement.dataset.theme"
    folded = "document.querySelectorAll('details:not([open])').length"
    light, before = tab.evaluate(paper), tab.evaluate(folded)
    assert before > 0
    tab.click("#theme")
    dark = tab.evaluate(theme)
    assert tab.evaluate(paper) != light
    for event, expected in ("beforeprint", (0, "light")), ("afterprint", (before, dark)):
        tab.evaluate(f"dispatchEvent(new Event('{event}'))")
        assert (tab.evaluate(folded), tab.evaluate(theme)) == expected
    tab.click("#theme")
    assert tab.evaluate(paper) == light
    tab.click("#run summary")
    tab.click("#copy")
    expect(tab.locator("#copy")).to_have_text(re.compile("copied|selected: press Ctrl.C"))
