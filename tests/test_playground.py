"""The playground of the documentation: sweeps like those of the package, also on a phone."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from powermeans import PowerKMeans
from powermeans.engine import PathRecorder
from powermeans.mathematics.schedules import Fixed

STATIC = Path(__file__).parents[1] / "docs" / "_static"
SECTION = (STATIC / "playground.html").read_text(encoding="utf-8")
SCRIPT = (STATIC / "playground.js").read_text(encoding="utf-8")
PATHS = """(([points, seeds, s, growth]) => {
  const path = (run) => {
    const centers = [];
    for (let goes = true; goes; centers.push(run.centers)) goes = run.step();
    return centers;
  };
  const { lloyd, power } = globalThis.playground;
  return [path(lloyd(points, seeds)), path(power(points, seeds, s, growth))];
})(%s)"""


def in_node(expression):
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no node here: apt-get install nodejs")
    code = f"{SCRIPT}\nconsole.log(JSON.stringify({expression}))"
    return json.loads(
        subprocess.run([node, "-"], input=code, capture_output=True, text=True, check=True).stdout
    )


def expected_path(points, seeds, **options):
    path = PathRecorder()
    options |= {"init": seeds, "effort": "none", "callback": path, "max_iter": 1000}
    PowerKMeans.as_published(len(seeds), **options).fit(points)
    return np.array([state.centers for state in path.states])


def test_the_sweeps_are_those_of_the_package() -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(40, 2)) + center for center in rng.uniform(0, 9, (5, 2))])
    seeds = points[:5]  # all in one cluster, and each on a point
    given = json.dumps([points.tolist(), seeds.tolist(), -1.0, 1.05])
    lloyd, power = (np.array(path) for path in in_node(PATHS % given))
    expected = expected_path(points, seeds, schedule=Fixed(-math.inf))
    assert len(lloyd) > 10
    np.testing.assert_allclose(lloyd, expected[: len(lloyd)], rtol=0, atol=1e-12)
    expected = expected_path(points, seeds, power=-1.0, schedule=1.05)
    assert len(expected) > 100
    np.testing.assert_allclose(power, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("width", [390, 1280])
def test_points_are_dragged_and_painted_without_network(browser, tmp_path, width) -> None:
    shutil.copytree(STATIC, tmp_path / "_static")
    page = '<meta name="viewport" content="width=device-width">' + SECTION
    (tmp_path / "index.html").write_text(f"<!doctype html>{page}", encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        offline=True,
        reduced_motion="reduce",
        has_touch=True,
    )
    tab, faults = context.new_page(), []
    tab.on("console", lambda message: faults.append(message.text))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.goto((tmp_path / "index.html").as_uri())
    assert tab.locator('[data-name="power-sum"]').inner_text().endswith("still soft")
    tab.locator('[data-name="run"]').click()
    tab.wait_for_function("document.querySelector('[data-name=verdict]').textContent")
    assert "power k-means ends" in tab.locator('[data-name="verdict"]').inner_text()
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    n_points = "document.querySelectorAll('[data-name=power] circle:not(.seed)').length"
    box = tab.locator('[data-name="power"]').bounding_box()
    sums = tab.locator('[data-name="power-sum"]')
    before = sums.inner_text()
    assert tab.evaluate(n_points) == 270
    tab.touchscreen.tap(box["x"] + 4, box["y"] + 4)  # where there are no points
    assert tab.evaluate(n_points) == 272
    assert sums.inner_text() != before
    seed = tab.locator('[data-name="lloyd"] .seed').first
    before, at = seed.get_attribute("cx"), seed.bounding_box()
    tab.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    tab.mouse.down()
    tab.mouse.move(at["x"] + 40, at["y"] + 20)
    tab.mouse.up()
    assert float(seed.get_attribute("cx")) > float(before) + 1
    assert tab.evaluate(n_points) == 272
    tab.locator('[data-name="clear"]').click()
    assert tab.evaluate(n_points) == 0
    tab.touchscreen.tap(box["x"] + 40, box["y"] + 40)
    tab.locator('[data-name="seeds"]').click()
    tab.wait_for_function("document.querySelector('[data-name=verdict]').textContent")
    assert "Both end" in tab.locator('[data-name="verdict"]').inner_text()
    assert faults == []
    context.close()
