"""The report: its structure by the standard library, its controls in a real browser."""

import functools
import html
import itertools
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans
from powermeans import PowerKMeans, Prepare, open_table
from powermeans.errors import ArgumentError
from powermeans.methods import KernelPowerKMeans, SpectralClustering, SphericalMixture
from powermeans_tables.preparing.kinds import Column
from powermeans_tables.report.report import write_page
from powermeans_tables.report.subject import FileTable, Subject

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

    def cells(self, kind):
        """The cells of a table, row by row, as text and as where its bar begins and ends."""
        table = self.text.partition(f'<table class="{kind}">')[2].partition("</table>")[0]
        rows = re.findall("<tr>(.*?)</tr>", table, re.DOTALL)
        text = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
        return [
            [html.unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in row] for row in text
        ]

    def card(self, label):
        found = self.text.partition(f'id="cluster-{label}"')[2].partition("</article>")[0]
        words = re.sub("<[^>]*>", " ", found.partition(">")[2])
        return " ".join(html.unescape(words).split())

    @property
    def figures(self):
        found = re.findall(r"<dt>([^<]*)</dt><dd>(.*?)</dd>", self.text)[:3]
        return {name: re.sub("<[^>]*>", "", value).replace("\xa0", " ") for name, value in found}


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
    certainty="clear",
    why="clusters overlap & touch",
    verdict=lambda: "3 groups; clear",
    by_criterion={"separation": 3, "dp_means": 2, "bic": None},
)


def page_of(folder, model, X, file=None, scalers=(), **options):
    path = folder / "report.html"
    if file is None:
        written = powermeans.report(model, X, path, scalers=scalers, **options)
    else:
        subject = Subject.of(model, X, scalers=scalers, file=file)
        written = write_page(subject, path, "Clusters", "X = ...", **options)
    return Page(written.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    model = PowerKMeans(3, random_state=0, effort="none").fit(TABLE)
    page_of(folder, model, TABLE, choice=CHOICE, title="Shops & <customers>")
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
    described = {one.get("aria-describedby") for one in page.attributes("div")} - {None}
    assert described <= ids.keys()
    for _, attributes in page.elements:
        assert not {"src", "srcset", "data", "action", "poster"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search("https?://", page.text)
    (policy,) = (one for one in page.attributes("meta") if "http-equiv" in one)
    assert policy["content"].startswith("default-src 'none'")
    assert '"powermeans' in page.text[:600]  # by which the command knows its own pages
    # Names of columns are shown as they are, and run nowhere.
    assert len(page.attributes("script")) == 2
    assert not any("x" in text for text in re.findall("<b>(.*?)</b>", page.text) if len(text) == 1)
    assert all(name in page.words["means"] for name in NASTY[:3])


def test_a_page_has_a_section_for_each_question(page, report_of):
    assert tuple(page.words) == ("overview", "means", "rows", "k", "gap", "read", "code")
    assert page.figures["clusters"] == "3"
    assert page.figures["rows used"] == "90 of 90"
    assert float(page.figures["near their center"].split()[0].strip("<>")) > 99
    assert sorted(Counter(page.data["labels"]).values()) == [20, 30, 40]
    assert sorted(page.data["columns"]) == sorted(SHOWN)
    for label in range(3):
        assert f"{Counter(page.data['labels'])[label]} rows" in page.card(label)
    assert (
        "3 groups; clear, because clusters overlap & touch. Each criterion recommends"
        in page.words["k"]
    )
    assert "a number: separation 3, dp means 2, bic none." in page.words["k"]
    assert page.text.count("class=chosen") == 1
    assert "model = PowerKMeans(" in page.words["code"]
    unclear = SimpleNamespace(**{**vars(CHOICE), "certainty": "not clear"})
    model = PowerKMeans(3, random_state=0, effort="none").fit(TABLE)
    page = report_of(model, TABLE, choice=unclear)
    assert "this one is a guess" in page.words["overview"]


def test_cards_bars_and_rows_speak_of_the_columns_of_a_file(report_of):
    """In categories, units and identifiers, with signs; what was left out is in the box."""
    table = pa.table({
        "Name": ["Ann", "Bo", "Cy", "Di", "Eve", "total"],
        "Team": ["IT", "IT", "Sales", "Sales", "Sales", ""],
        "Cost": [-50.25, -60.0, -10.5, -12.0, -13.0, 0.0],
    })  # fmt: skip
    prepare = Prepare()
    points = prepare.fit_transform(table.slice(0, 5))
    prepare.columns_[0] = Column("Name", "identifier", "all differ")
    model = PowerKMeans(2, random_state=0).fit(points)
    file = FileTable(open_table(table), ["check <me>"], ["read with care"], np.arange(1, 6))
    page = report_of(model, points, scalers=[prepare], file=file)
    poor = int(model.labels_[0])
    assert page.figures["rows used"] == "5 of 6"
    assert re.search(r"[Ll]ower Cost", page.card(poor))
    assert "Team IT 100 %" in page.card(poor)
    assert "Cost −55 (average −29)" in page.card(poor)
    cells = page.cells("rows")
    assert {"Name", "Team", "Cost"} == {*cells[0]} - {""}
    assert {"row 1", "Ann", "IT", "−50.2"} in [{*row} for row in cells]
    means = {row[0]: row[1:] for row in page.cells("means")}
    assert means["Team: IT"][poor] == "100\xa0%"
    assert "“Name” (identifier: all differ)" in page.words["overview"]
    assert "Check <me>" in page.words["overview"]
    assert "read with care" in page.words["read"]
    assert any("Ann" in row for row in page.data["rows"])


def test_a_map_of_places_has_longitude_to_the_right_and_latitude_up(report_of):
    places = [(52.5, 13.4), (48.1, 11.6), (51.2, 6.8), (54.3, 10.1)]
    rows = [(a + i / 100, b) for a, b in places for i in range(5)]
    prepare = Prepare()
    points = prepare.fit_transform({"lat": [a for a, _ in rows], "lon": [b for _, b in rows]})
    model = PowerKMeans(4, random_state=0).fit(points)
    page = report_of(model, points, scalers=[prepare])
    right, down = np.transpose(page.data["places"])
    lat, lon = np.transpose(rows)
    assert np.corrcoef(right, lon)[0, 1] > 0.999
    assert np.corrcoef(down, lat)[0, 1] < -0.999
    # One degree of longitude is shorter than one of latitude.
    scales = np.ptp(right) / np.ptp(lon), np.ptp(down) / np.ptp(lat)
    assert scales[0] / scales[1] == pytest.approx(math.cos(math.radians(51.5)), rel=0.02)
    north = int(model.labels_[-1])
    assert "North" in page.card(north)
    assert "54.32° N, 10.10° E" in page.card(north)


@pytest.mark.parametrize(
    ("n_rows", "spread", "least", "most"),
    [(200, 0.5, 99, 100), (200, 0.0, 0, 30)],
    ids=["four groups", "noise"],
)
def test_how_sure_rows_are_means_the_same_in_thousands_of_columns(
    n_rows, spread, least, most, report_of
):
    rng = np.random.default_rng(0)
    centers = spread * rng.normal(size=(4, 5000))
    points = centers[np.arange(n_rows) % 4] + rng.normal(size=(n_rows, 5000))
    model = PowerKMeans(4, random_state=0, effort="none").fit(points)
    sure = float(report_of(model, points).figures["near their center"].split()[0].strip("<>"))
    assert least <= sure <= most


def test_a_page_stays_small(report_of):
    """More points than are shown are sampled, and hundreds of clusters and columns are packed."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20_050, 8))
    page = report_of(PowerKMeans(3, random_state=0, effort="none").fit(points), points)
    assert "5,000 of 20,050 rows, drawn by chance" in page.words["overview"]
    assert len(page.data["places"]) == len(page.data["rows"]) == 5_000
    assert len(page.text) < 2_000_000
    points = rng.normal(size=(3000, 400))
    model = PowerKMeans(300, effort="none", random_state=0, max_iter=20).fit(points)
    assert len(report_of(model, points).text) < 2_000_000


@pytest.mark.parametrize(
    ("model", "points"),
    [
        (PowerKMeans(3), sparse.csr_matrix(TABLE.to_numpy())),
        (PowerKMeans(3, missing="observed"), np.where(np.eye(90, 5) == 1, np.nan, TABLE)),
        (PowerKMeans(1), TABLE),
        (PowerKMeans(2), TABLE.iloc[:, :1]),
        (PowerKMeans(2, divergence="cosine"), TABLE),
        *((kind(3), TABLE.to_numpy()) for kind in (
            SklearnKMeans, KernelPowerKMeans, SpectralClustering)),
        (SphericalMixture(3), TABLE),
        (powermeans.MiniBatchPowerKMeans(3), TABLE.astype(np.float32)),
    ],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_every_kind_of_model_and_of_points_has_a_report(model, points, report_of):
    page = report_of(model.fit(points), points)
    assert page.open == []
    assert type(model).__name__ in page.words["read"]
    assert "nan" not in page.words["means"]


@pytest.mark.parametrize("offset", [0.0, 1.7e9, 1e60])
def test_values_far_from_zero_stay_what_they_are(offset, report_of):
    times = offset + np.repeat([0.0, 60.0], 50) * max(1.0, offset / 1.7e9)
    times += np.random.default_rng(0).random(100)
    points = np.column_stack([times, np.repeat([95_131.0, 123_456.0], 50)])
    model = PowerKMeans(2, random_state=0, effort="none").fit(points)
    page = report_of(model, points)
    right, down = np.transpose(page.data["places"])
    assert np.corrcoef(right, points[:, 0] - offset)[0, 1] > 0.999
    assert np.corrcoef(down, points[:, 1])[0, 1] < -0.999
    # Means have all their whole digits.
    wholes = [95_131, 123_456, *(model.cluster_centers_[:, 0] if offset == 1.7e9 else [])]
    assert all(f"{whole:,.0f}" in page.words["means"] for whole in wholes)


def test_zero_is_zero_and_a_column_has_one_number_of_digits(report_of):
    points = np.repeat([[-1.0, 4.25], [1.0, 0.75], [0.0, 2.5]], 20, axis=0)
    points[:, 0] += np.tile([1e-17, -1e-17], 30)
    page = report_of(PowerKMeans(3, random_state=0).fit(points), points)
    first, second = (row[1:] for row in page.cells("means")[1:])
    assert sorted(first) == ["0.00", "1.00", "−1.00"]
    assert sorted(second) == ["0.8", "2.5", "4.2"]
    assert "e−" not in page.words["means"] + page.words["rows"] + page.words["overview"]


def test_a_page_of_scaled_points_has_means_and_values_in_the_units_of_the_data(report_of):
    noise = np.random.default_rng(0).normal(size=(60, 3))
    table = pd.DataFrame(noise + np.repeat([0, 7, 14], 20)[:, None])
    table = (table * [1.0, 1000.0, 10.0] + [5.0, 80_000.0, 0.0]).rename(columns="of {}".format)
    scalers = [StandardScaler().fit(table), MinMaxScaler((0, 10))]
    scaled = scalers[1].fit_transform(scalers[0].transform(table))
    points = pd.DataFrame(scaled, columns=table.columns)
    model = PowerKMeans(3, random_state=0).fit(points)
    page = report_of(model, points, scalers=scalers)
    assert "StandardScaler, then MinMaxScaler" in page.words["read"]
    means = table.groupby(model.labels_).mean()
    assert all(f"{mean:,.0f}" in page.words["means"] for mean in means["of 1"])
    cell = page.data["rows"][0][1 + page.data["columns"].index("of 1")]
    assert float(cell.replace(",", "")) == pytest.approx(table["of 1"].iloc[0], abs=0.5)


def test_a_weight_of_three_says_what_three_copies_say(report_of):
    points, counts = TABLE.to_numpy(), np.random.default_rng(0).integers(1, 5, size=90)
    model = PowerKMeans(3, random_state=0).fit(points, sample_weight=counts)
    weighted = report_of(model, points, sample_weight=counts)
    copied = report_of(model, np.repeat(points, counts, axis=0))
    assert weighted.words["means"] == copied.words["means"]
    assert weighted.figures["near their center"] == copied.figures["near their center"]
    share = re.compile(r"(\S+) % of")
    for label in range(3):
        assert share.search(weighted.card(label))[1] == share.search(copied.card(label))[1]
    assert "of the weight" in weighted.card(0)
    page = report_of(model, points, sample_weight=np.where(model.labels_ == 1, 0.0, 1.0))
    assert "rows, which weigh nothing" in page.card(1)
    assert "nan" not in page.words["means"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda table: table[["a"]], 'X has no "b": pass'),
        (lambda table: table.assign(c=1.0), "X has other columns than the model"),
        (lambda table: table.assign(a="\x1b["), r"X has the text '\\x1b\[' in column 'a'"),
        (lambda table: table.assign(a=[[1, 2]] * 9), r"X has the list \[1, 2\] in column 'a'"),
        (lambda table: table.assign(a=pd.Timestamp("2024-01-01")), "dates.* in column 'a'"),
    ],
)
def test_a_wrong_frame_is_named_whoever_sees_it_first(change, named, tmp_path) -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["a", "b"])
    for model in (make_pipeline(StandardScaler(), PowerKMeans(2)), PowerKMeans(2)):
        with pytest.raises(ArgumentError, match=named):
            powermeans.report(model.fit(table), change(table), tmp_path / "page.html")


def test_a_pipeline_that_prepares_a_table_has_a_report_of_one_row_too(tmp_path) -> None:
    words = ["x", "y", "z"] * 3
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=9), "b": words})
    model = make_pipeline(Prepare(), PowerKMeans(2, random_state=0)).fit(table)
    for rows in (table, table[:1]):
        page = powermeans.report(model, rows, tmp_path / "page.html").read_text("utf-8")
        assert "<td>b" in page or ">b<" in page


def test_what_does_not_go_with_the_points_is_refused_and_no_file_is_left(tmp_path):
    model = PowerKMeans(3, random_state=0).fit(TABLE)
    for options, named in (
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"sample_weight": np.full(90, -1.0)}, "sample_weight"),
        ({"names": {3: "Nobody"}}, "names.* 3"),
    ):
        with pytest.raises(ValueError, match=named):
            page_of(tmp_path, model, TABLE, **options)
    assert list(tmp_path.iterdir()) == []


# In a browser.


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


IS_NO_WIDER = "document.documentElement.scrollWidth <= innerWidth"


N_SHOWN = "document.querySelectorAll('#dots .dots:not(.off)').length"
CUT = """[...document.querySelectorAll("h1, h3, th, td, li, .wide, p, dd")].filter((one) =>
  one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0
    && getComputedStyle(one).display !== "inline").map((one) => one.outerHTML)"""


@pytest.mark.parametrize("tab", [1280, 390], ids=["desktop", "phone"], indirect=True)
def test_the_page_fits_the_screen_and_names_all_controls(tab):
    assert tab.evaluate(IS_NO_WIDER)
    assert tab.evaluate(CUT) == []
    nameless = """[...document.querySelectorAll("button, [tabindex], svg[role]")].filter((one) =>
      !(one.textContent.trim() || one.getAttribute("aria-label"))).length"""
    assert tab.evaluate(nameless) == 0
    assert tab.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length") == 0
    map_ends = tab.evaluate("document.getElementById('stage').getBoundingClientRect().bottom")
    assert map_ends < 844


@pytest.mark.parametrize("width", [1280, 390])
def test_no_long_name_is_cut(browser, tmp_path, width):
    names = ["x" * 70, "many words " * 12, "snake_case_" * 9, *"abcdefghijklm"]
    table = pd.DataFrame(np.repeat(np.eye(16)[:13] * 9, 5, axis=0), columns=names)
    model = PowerKMeans.from_centers(table.drop_duplicates())
    powermeans.report(model, table, tmp_path / "long.html", names={1: "y" * 150})
    opened = browser.new_page(viewport={"width": width, "height": 844})
    opened.goto((tmp_path / "long.html").as_uri())
    opened.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert opened.evaluate(CUT) == []
    assert opened.evaluate(IS_NO_WIDER)
    opened.close()


def test_the_map_is_there_without_scripts_and_a_print_has_all_details_open(browser, tmp_path):
    points = np.arange(26.0)[:, None] // 2
    written = powermeans.report(PowerKMeans.from_centers(points[::2]), points, tmp_path / "r.html")
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(written.as_uri())
    assert opened.locator("#dots .dots").count() == opened.locator(".center").count() == 13
    context.close()
    opened = browser.new_page()
    opened.goto(written.as_uri())
    folded = "document.querySelectorAll('details:not([open])').length"
    assert opened.evaluate(folded) == 1
    for event, expected in ("beforeprint", 0), ("afterprint", 1):
        opened.evaluate(f"dispatchEvent(new Event('{event}'))")
        assert opened.evaluate(folded) == expected
    opened.close()


def test_a_badge_shows_its_cluster_alone(tab):
    badge = tab.locator("button.badge").first
    for expected in (("true", 1), ("false", 3)):
        badge.click()
        assert (badge.get_attribute("aria-pressed"), tab.evaluate(N_SHOWN)) == expected


def test_the_map_is_worked_by_keyboard_and_pointed_at(tab):
    tab.focus("#stage")
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.keyboard.press(key)
        told.append(tab.inner_text("#tip"))
    assert told[0] == told[2] != told[1]
    row = int(told[0].partition("row ")[2].partition("\n")[0])
    assert f"{NASTY[0]}: {TABLE.iloc[row - 1, 0]:.2f}".replace("-", "−") in told[0]
    tab.keyboard.press("Escape")
    assert not tab.locator("#tip").is_visible()
    box = tab.locator("#stage").bounding_box()
    for right, down in itertools.product(range(20), repeat=2):
        tab.mouse.move(box["x"] + box["width"] * right / 20, box["y"] + box["height"] * down / 20)
        if tab.locator("#tip").is_visible():
            break
    assert tab.inner_text("#tip").startswith("cluster ")


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--columns b,a --weights w",
        "--scale minmax --delimiter ;",
        "--as b=ignore --effort none",
    ],
)
@pytest.mark.filterwarnings("ignore:rows.csv. left out")
def test_the_code_on_the_page_fits_the_same_clusters_again(options, run):
    points = np.random.default_rng(0).normal(size=(60, 2)) * [1, 9]
    mark = ";" if "delimiter" in options else ","
    frame = pd.DataFrame({"a": points[:, 0], "b": points[:, 1], "w": np.arange(60) % 3 + 1})
    frame.to_csv("rows.csv", index=False, sep=mark)
    run("fit rows.csv -k 3 -q -m m.pm --report page.html", *options.split())
    page = Path("page.html").read_text("utf-8")
    code = html.unescape(re.search(r"<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)[1])
    exec(code, found := {})
    assert found["model"].inertia_ == powermeans.load("m.pm").inertia_
