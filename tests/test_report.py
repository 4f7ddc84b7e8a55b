"""The report: its structure by the standard library, its controls in a real browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans
from powermeans import PathRecorder, PowerKMeans

VOID = {"meta", "input", "link", "br", "img", "wbr"}
NASTY = ["<b>x</b>", "</script><script>alert(1)</script>", "{{data}}", '"quoted" & \u2028', "'"]
SHOWN = [name.replace("\u2028", "\\u2028") for name in NASTY]
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    np.repeat(np.eye(5)[:3] * 9, [20, 30, 40], axis=0) + RNG.normal(size=(90, 5)), columns=NASTY
)


class Page(HTMLParser):
    """Elements, text by section, and whether what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: dict[str, str] = {}
        self.data = ""
        self._section = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self._section = dict(attrs)["id"] or ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"] and self.elements[-1][1].get("id") == "data":
            self.data += data
        elif "section" in self.open:
            self.words[self._section] = self.words.get(self._section, "") + data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


class Choice:
    table: ClassVar[dict[str, Any]] = {
        "k": np.array([2, 3, 4]),
        "inertia": np.array([9.0, 2.0, 1.5]),
        "separation": np.array([0.1, 0.5, np.nan]),
        "separation_error": np.zeros(3),
    }
    recommended = 3
    agreement = 0.75
    decided_by = "separation"
    is_clear = True
    by_criterion: ClassVar[dict[str, int | None]] = {"separation": 3}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = PathRecorder()
    model = PowerKMeans(3, random_state=0, effort="none", callback=path).fit(TABLE)
    return powermeans.report(
        model,
        TABLE,
        tmp_path_factory.mktemp("report") / "report.html",
        title="Shops & <customers>",
        annealing=path,
        choice=Choice(),
        source="shops.csv",
    )


@pytest.fixture(scope="module")
def page(written: Path) -> Page:
    return Page(written.read_text(encoding="utf-8"))


def report_of(model: Any, X: Any, folder: Path, **options: Any) -> Page:
    written = powermeans.report(model, X, folder / "report.html", **options)
    return Page(written.read_text(encoding="utf-8"))


def floats(encoded: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(encoded["bytes"]), dtype=encoded["dtype"])


def test_everything_opened_is_closed_and_every_id_is_there_once(page: Page) -> None:
    assert page.open == []
    ids = Counter(found["id"] for _, found in page.elements if "id" in found)
    assert max(ids.values()) == 1
    for link in page.attributes("a"):
        assert (link["href"] or "").removeprefix("#") in ids
    for label in page.attributes("label"):
        assert label["for"] in ids


def test_nothing_is_loaded_from_anywhere(page: Page, written: Path) -> None:
    for _, attributes in page.elements:
        assert not {"src", "srcset", "data", "action", "poster"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    text = written.read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    (policy,) = (one for one in page.attributes("meta") if "http-equiv" in one)
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_there_is_a_section_for_all_that_was_given(page: Page) -> None:
    expected = "answer", "warnings", "clusters", "points", "means", "sure", "annealing", "run"
    assert tuple(page.words) == expected
    assert "90" in page.words["run"]
    assert "Recommended is k = 3; 75% of the criteria say so" in page.words["sure"]
    assert "separation_error" not in page.words["sure"]
    assert 'read_table("shops.csv", columns=["<b>x</b>", ' in page.words["run"]


def test_the_page_says_that_no_k_is_clear_and_why(tmp_path: Path) -> None:
    class Unclear(Choice):
        is_clear = False
        doubt = "clusters overlap & touch"

    model = PowerKMeans(3, random_state=0, effort="none").fit(TABLE)
    page = report_of(model, TABLE, tmp_path, choice=Unclear())
    expected = "There is no clear k: clusters overlap & touch. A guess is 3; 75% of the"
    assert expected in page.words["sure"]
    assert "no number of clusters is clear, and 3 is a guess" in page.words["answer"]


def test_names_of_columns_are_shown_as_they_are_and_run_nowhere(page: Page) -> None:
    assert len(page.attributes("script")) == 2
    assert len(page.attributes("b")) == 0
    for name in NASTY[:3]:
        assert name in page.words["means"]
    names = [column["name"] for column in json.loads(page.data)["scatter"]["columns"]]
    assert names == ["principal axis 1", "principal axis 2", *SHOWN]


def test_the_points_of_the_page_are_those_of_the_data(page: Page) -> None:
    scatter = json.loads(page.data)["scatter"]
    for column, values in zip(scatter["columns"][2:], TABLE.to_numpy().T, strict=True):
        np.testing.assert_array_equal(floats(column["values"]), values)
    labels = np.frombuffer(base64.b64decode(scatter["labels"]), dtype="<u4")
    assert sorted(np.bincount(labels).tolist()) == [20, 30, 40]
    assert json.loads(page.data)["sizes"] == np.bincount(labels).tolist()


def test_the_steps_of_the_annealing_end_at_the_centers(page: Page) -> None:
    data = json.loads(page.data)
    ends = np.array(data["annealing"]["steps"][-1]["centers"])
    np.testing.assert_allclose(ends, np.array(data["scatter"]["centers"])[:, :2], rtol=1e-4)


def test_more_points_than_are_shown_are_sampled_and_it_says_so(tmp_path: Path) -> None:
    points = RNG.normal(size=(20_050, 8))
    model = PowerKMeans(3, random_state=0, effort="none").fit(points)
    page = report_of(model, points, tmp_path)
    assert "A sample of 10,000 of the 20,050 points" in page.words["points"]
    assert len(floats(json.loads(page.data)["scatter"]["columns"][0]["values"])) == 10_000
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


@pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")
def test_what_looks_wrong_is_said(tmp_path: Path) -> None:
    points = TABLE.to_numpy() * [1000.0, 1.0, 1.0, 1.0, 1.0]
    model = PowerKMeans(3, random_state=0).fit(points)
    assert "StandardScaler" in report_of(model, points, tmp_path).words["warnings"]


def holed() -> np.ndarray:
    points = TABLE.to_numpy().copy()
    points[3, 2] = np.nan
    return points


@pytest.mark.parametrize(
    ("model", "points"),
    [
        (PowerKMeans(3), sparse.csr_matrix(TABLE.to_numpy())),
        (PowerKMeans(3, missing="observed"), holed()),
        (PowerKMeans(1), TABLE),
        (PowerKMeans(2), TABLE.iloc[:, :1]),
        (PowerKMeans(2, divergence="cosine"), TABLE),
        (SklearnKMeans(3, n_init=1), TABLE.to_numpy()),
        (powermeans.KernelPowerKMeans(3), TABLE.to_numpy()),
        (powermeans.SpectralClustering(3), TABLE.to_numpy()),
        (powermeans.SphericalMixture(3), TABLE),
        (powermeans.MiniBatchPowerKMeans(3), TABLE.astype(np.float32)),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_kind_of_model_and_of_points_has_a_report(
    model: Any, points: Any, tmp_path: Path
) -> None:
    page = report_of(model.fit(points), points, tmp_path)
    assert page.open == []
    assert type(model).__name__ in page.words["run"]
    json.loads(page.data, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_hundreds_of_clusters_and_columns_stay_below_two_megabytes(tmp_path: Path) -> None:
    points = RNG.normal(size=(3000, 400))
    path = PathRecorder()
    model = PowerKMeans(300, effort="none", random_state=0, max_iter=20, callback=path)
    report_of(model.fit(points), points, tmp_path, annealing=path)
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def told(page: Page) -> dict[str, dict[str, Any]]:
    """The columns of the page that a point tells, by name."""
    columns = json.loads(page.data)["scatter"]["columns"]
    return {column["name"]: column for column in columns if column.get("tell")}


@pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")
@pytest.mark.parametrize("offset", [0.0, 1.7e9, 1e60])
def test_values_far_from_zero_stay_what_they_are(offset: float, tmp_path: Path) -> None:
    times = offset + np.repeat([0.0, 60.0], 50) * max(1.0, offset / 1.7e9) + RNG.random(100)
    points = np.column_stack([times, np.repeat([1.0, 2.0], 50)])
    recorder = PathRecorder()
    model = PowerKMeans(2, random_state=0, effort="none", callback=recorder).fit(points)
    page = report_of(model, points, tmp_path, annealing=recorder)
    data = json.loads(page.data)
    for column, values in zip(data["scatter"]["columns"][:2], points.T, strict=True):
        np.testing.assert_array_equal(floats(column["values"]), values)
    np.testing.assert_allclose(data["scatter"]["centers"], np.tile(model.cluster_centers_, 2))
    ends = np.array(data["annealing"]["steps"][-1]["centers"])
    assert abs(ends[0] - ends[1])[0] == pytest.approx(
        np.ptp(model.cluster_centers_[:, 0]), rel=1e-3
    )
    drawn = floats(data["annealing"]["points"]).reshape(-1, 2)
    np.testing.assert_array_equal(drawn, points)


@pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")
def test_means_have_all_their_whole_digits(tmp_path: Path) -> None:
    points = np.repeat([[1_700_000_000.25, 95_131.0], [1_700_000_060.25, 123_456.0]], 20, axis=0)
    page = report_of(PowerKMeans(2, random_state=0).fit(points), points, tmp_path)
    for value in ("1700000000.25", "95131", "1700000060.25", "123456"):
        assert value in page.words["means"]


def test_a_page_of_scaled_points_has_means_and_values_in_the_units_of_the_data(
    tmp_path: Path,
) -> None:
    table = pd.DataFrame(RNG.normal(size=(60, 3)) + np.repeat([0, 7, 14], 20)[:, None])
    table = (table * [1.0, 1000.0, 10.0] + [5.0, 80_000.0, 0.0]).rename(columns="of {}".format)
    scalers = [StandardScaler().fit(table), MinMaxScaler((0, 10))]
    scaled = scalers[1].fit_transform(scalers[0].transform(table))
    points = pd.DataFrame(scaled, columns=table.columns)
    model = PowerKMeans(3, random_state=0).fit(points)
    page = report_of(model, points, tmp_path, scalers=scalers)
    assert "StandardScaler, then MinMaxScaler" in page.words["run"]
    assert "in the units of the data" in page.words["means"]
    for label in range(3):
        mean = table[model.labels_ == label]["of 1"].mean()
        assert f"{mean:.0f}" in page.words["means"]
    for name, column in told(page).items():
        np.testing.assert_allclose(floats(column["values"]), table[name], rtol=1e-12, atol=1e-12)
    centers = np.array(json.loads(page.data)["scatter"]["centers"])[:, 2:]
    expected = table.groupby(model.labels_).mean()
    np.testing.assert_allclose(centers, expected, rtol=1e-9)


def test_a_weight_of_three_says_what_three_copies_say(tmp_path: Path) -> None:
    points, counts = TABLE.to_numpy(), RNG.integers(1, 5, size=90)
    copies = np.repeat(points, counts, axis=0)
    model = PowerKMeans(3, random_state=0).fit(points, sample_weight=counts)
    weighted = report_of(model, points, tmp_path, sample_weight=counts)
    cells = re.compile(r'data-of="(?:share|clearly its own)">[^<]*|explained</dt><dd>[^<]*')
    of_weights = cells.findall((tmp_path / "report.html").read_text("utf-8"))
    copied = report_of(model, copies, tmp_path)
    assert len(of_weights) == 7
    assert of_weights == cells.findall((tmp_path / "report.html").read_text("utf-8"))
    assert weighted.words["means"] == copied.words["means"]
    assert "of the weight." in weighted.words["clusters"]
    assert "of the weight." not in copied.words["clusters"]
    assert "sample_weight=weights" in weighted.words["run"]


def test_a_cluster_that_weighs_nothing_is_told_and_breaks_nothing(tmp_path: Path) -> None:
    model = PowerKMeans(3, random_state=0).fit(TABLE.to_numpy())
    weights = np.where(model.labels_ == 1, 0.0, 1.0)
    page = report_of(model, TABLE.to_numpy(), tmp_path, sample_weight=weights)
    assert "rows, which weigh nothing." in page.words["clusters"]
    assert "nan" not in page.words["means"]


@pytest.mark.parametrize(
    ("weights", "fault"), [([1.0], "sample_weight"), (np.full(90, -1.0), "sample_weight")]
)
def test_weights_that_are_none_are_refused(weights: Any, fault: str, tmp_path: Path) -> None:
    model = PowerKMeans(3, random_state=0).fit(TABLE)
    with pytest.raises(ValueError, match=fault):
        powermeans.report(model, TABLE, tmp_path / "r.html", sample_weight=weights)


def test_a_recorder_that_saw_no_fit_is_refused_and_no_file_is_left(tmp_path: Path) -> None:
    model = PowerKMeans(3, random_state=0).fit(TABLE)
    with pytest.raises(ValueError, match="annealing has recorded nothing"):
        powermeans.report(model, TABLE, tmp_path / "r.html", annealing=PathRecorder())
    assert list(tmp_path.iterdir()) == []


# In a browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def tab(browser: Any, written: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The report, opened; no error may have been said when it is closed."""
    context = browser.new_context(
        viewport={"width": request.param, "height": 844}, offline=True, reduced_motion="reduce"
    )
    opened, said, asked = context.new_page(), [], []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(written.as_uri())
    yield opened
    assert said == []
    assert asked == [written.as_uri()]
    context.close()


def colours_drawn(tab: Any, canvas: str) -> int:
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


def test_page_and_clusters_are_no_wider_than_the_screen(tab: Any) -> None:
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    is_within = "(one) => one.scrollWidth <= one.clientWidth"
    assert tab.eval_on_selector("#clusters .wide", is_within)


def test_no_name_is_cut_on_a_desktop(browser: Any, tmp_path: Path) -> None:
    names = ["x" * 70, "many words " * 12, "snake_case_" * 9, *"abcdefgh"]
    table = pd.DataFrame(np.repeat(np.eye(11)[:3] * 9, 20, axis=0), columns=names)
    table += RNG.normal(size=table.shape)
    model = PowerKMeans(3, random_state=0).fit(table)
    powermeans.report(model, table, tmp_path / "long.html", names={1: "y" * 150})
    opened = browser.new_page(viewport={"width": 1280, "height": 844})
    opened.goto((tmp_path / "long.html").as_uri())
    cut = """[...document.querySelectorAll("h3, th, td, figcaption, .wide, p, #legend button")]
      .filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
        && getComputedStyle(one).display !== "inline").map((one) => one.outerHTML)"""
    assert opened.evaluate(cut) == []
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.close()


def test_a_link_to_a_folded_cluster_unfolds_it(browser: Any, tmp_path: Path) -> None:
    points = np.arange(26.0)[:, None]
    model = PowerKMeans.from_centers(points[::2])
    powermeans.report(model, points, tmp_path / "many.html")
    opened = browser.new_page(reduced_motion="reduce")
    opened.goto((tmp_path / "many.html").as_uri())
    assert not opened.locator("#cluster-9").evaluate("(one) => one.open")
    opened.click('table.clusters a[href="#cluster-9"]')
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(opened.locator("#cluster-9 .charts")).to_be_visible()
    opened.close()


def test_clusters_are_hidden_and_shown(tab: Any) -> None:
    all_drawn = colours_drawn(tab, "scatter")
    first = tab.locator("#legend button").first
    first.click()
    assert first.get_attribute("aria-pressed") == "false"
    fewer = colours_drawn(tab, "scatter")
    tab.click("#none")
    axes_only = colours_drawn(tab, "scatter")
    assert 0 < axes_only < fewer < all_drawn
    tab.click("#all")
    assert colours_drawn(tab, "scatter") == all_drawn


def test_zooming_spreads_the_points_and_all_come_back(tab: Any) -> None:
    before = colours_drawn(tab, "scatter")
    for _ in range(8):
        tab.click("#in")
    assert colours_drawn(tab, "scatter") < before
    tab.click("#reset")
    assert colours_drawn(tab, "scatter") == before


def test_pointing_at_a_point_tells_its_row_and_values(tab: Any) -> None:
    tab.locator("#scatter").scroll_into_view_if_needed()
    box = tab.locator("#scatter").bounding_box()
    for step in range(400):
        right, down = divmod(step, 20)
        tab.mouse.move(box["x"] + box["width"] * right / 20, box["y"] + box["height"] * down / 20)
        if tab.locator("#tip").is_visible():
            break
    text = tab.inner_text("#tip")
    assert text.startswith("cluster ")
    row = int(text.partition("row ")[2].partition("\n")[0])
    assert f"{NASTY[0]}: {TABLE.iloc[row - 1, 0]:.3g}"[:-1] in text


def test_the_scatter_is_reached_and_worked_by_keyboard(tab: Any) -> None:
    tab.focus("#reset")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "scatter"
    before = colours_drawn(tab, "scatter")
    for _ in range(8):
        tab.keyboard.press("+")
    assert colours_drawn(tab, "scatter") < before
    tab.keyboard.press("0")
    assert colours_drawn(tab, "scatter") == before
    tab.keyboard.press("n")
    first = tab.inner_text("#tip")
    tab.keyboard.press("n")
    assert tab.inner_text("#tip") != first
    tab.keyboard.press("p")
    assert tab.inner_text("#tip") == first
    tab.keyboard.press("Escape")
    assert not tab.locator("#tip").is_visible()


def test_the_wheel_zooms_only_a_scatter_that_was_chosen(tab: Any) -> None:
    tab.locator("#scatter").scroll_into_view_if_needed()
    before = colours_drawn(tab, "scatter")
    turn = """async () => document.getElementById("scatter").dispatchEvent(
      new WheelEvent("wheel", {deltaY: -900, cancelable: true}))"""
    assert tab.evaluate(turn)
    assert colours_drawn(tab, "scatter") == before
    tab.focus("#scatter")
    assert not tab.evaluate(turn)
    assert colours_drawn(tab, "scatter") != before


def test_other_columns_can_be_put_on_the_axes(tab: Any) -> None:
    tab.select_option("#right", label=NASTY[0])
    assert tab.locator("#right option").count() == 2 + len(NASTY)
    assert colours_drawn(tab, "scatter") > 0


def test_the_slider_moves_the_centers_and_play_runs_to_the_result(tab: Any) -> None:
    last = tab.locator("#sweep").get_attribute("max")
    assert tab.input_value("#sweep") == last
    result = tab.inner_text("#said")
    assert "the result, inertia" in result
    tab.focus("#sweep")
    tab.keyboard.press("Home")
    assert tab.inner_text("#said").startswith("sweep 1, power")
    assert colours_drawn(tab, "ways") > 0
    tab.click("#play")
    assert tab.inner_text("#play") == "pause"
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(tab.locator("#play")).to_have_text("play", timeout=20_000)
    assert tab.input_value("#sweep") == last
    assert tab.inner_text("#said") == result


def test_a_print_opens_what_is_folded_and_folds_it_again(tab: Any) -> None:
    folded = "document.querySelectorAll('details:not([open])').length"
    before = tab.evaluate(folded)
    assert before > 0
    tab.click("#theme")
    dark = tab.evaluate("document.documentElement.dataset.theme")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(folded) == 0
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(folded) == before
    assert tab.evaluate("document.documentElement.dataset.theme") == dark


def test_dark_and_light_change_places(tab: Any) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(paper)
    tab.click("#theme")
    assert tab.evaluate(paper) != light
    tab.click("#theme")
    assert tab.evaluate(paper) == light


def test_the_code_is_copied_or_selected(tab: Any) -> None:
    tab.click("#run summary")
    tab.click("#copy")
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(tab.locator("#copy")).to_have_text(re.compile("copied|selected: press Ctrl.C"))


def test_every_control_has_a_name_and_is_in_the_order_of_tabs(tab: Any) -> None:
    nameless = """[...document.querySelectorAll("button, select, input, canvas")].filter((one) =>
      !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length)).length"""
    assert tab.evaluate(nameless) == 0
    assert tab.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length") == 0
