"""Pages in a real browser: they render without an error and without the network, light and dark, wide and narrow."""

import os
import shutil

import pytest
from tests.builders import cluster, node, queue, spec, workload
from tests.report import plans
from tests.report.simulations import page
from tests.report.test_quota_picture import SHORT, played
from tests.web.consoles import MARKUP

from tenure.playthrough import play
from tenure.report.plans.plan_json import plan_json
from tenure.report.plans.plan_page import plan_page

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or "/usr/bin/chromium"
"""The same browser, where it can be without its windows: with them a new page takes three times the processor."""

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    if not os.path.exists(CHROMIUM) and not os.environ.get("CI"):  # noqa: PTH110  a plain question
        pytest.skip("there is no Chromium here")
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


def quota_page():
    """Give the page about a quota that is enforced as far as a guarantee lets it."""
    what = played(20, *SHORT)
    return plan_page(what.before, what.after, plan_json(what), what.quota_tracks)


PAGES = {
    "simulation": (
        page,
        ("use", "waiting", "slowdown", "wait", "gantt", "evictions", "violations", "queues", "settings"),
    ),
    "plan": (
        lambda: plan_page(plans.before(), plans.after(), plans.result()),
        ("nodes", "steps", "waiting", "evictions-refused", "requeue", "moves", "queues"),
    ),
    "quota": (quota_page, ("nodes", "quotas-over-time", "quotas", "queues-over-their-maximum", "steps", "queues")),
    "large plan": (
        lambda: plan_page(plans.before(500), plans.after(500), plans.result()),
        ("nodes", "steps", "queues"),
    ),
}


@pytest.fixture(params=PAGES)
def case(request, tmp_path):
    make, sections = PAGES[request.param]
    path = tmp_path / "page.html"
    path.write_text(make(), encoding="utf-8")
    return path.as_uri(), sections


UNHINTED = """() => [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1)
  .filter((one) => one.tabIndex !== 0 || !getComputedStyle(one).backgroundImage.includes("gradient")).length"""
"""Tables that are wider than their section without a shadow that says so, or that the keyboard does not reach."""


@pytest.mark.parametrize("width", [1200, 400])
def test_a_page_renders_without_errors_requests_or_overflow(browser, case, width):
    """It is opened in the light, and then seen in the dark."""
    address, sections = case
    told, fetched = [], []
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light")
    view.on("console", lambda message: told.append(message.text))
    view.on("pageerror", lambda error: told.append(str(error)))
    view.on("request", lambda request: fetched.append(request.url))
    view.goto(address)
    for scheme in ("light", "dark"):
        view.emulate_media(color_scheme=scheme)
        for name in sections:
            box = view.locator(f"#{name}").bounding_box()
            assert box is not None, (name, scheme)
            assert box["height"] > 40, (name, scheme)
            assert box["x"] >= 0, (name, scheme)
            assert box["x"] + box["width"] <= width, (name, scheme)
        overflow = view.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, scheme
        assert view.evaluate(UNHINTED) == 0, scheme
        background = view.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(part) for part in background[4:-1].split(","))
        assert (brightness > 600) is (scheme == "light")
    wide = view.locator(".scroll").evaluate_all("(all) => all.some((one) => one.scrollWidth > one.clientWidth + 1)")
    assert wide or width > 400
    view.close()
    assert told == []
    assert [url for url in fetched if not url.startswith("data:")] == [address]


def misnamed_page():
    """Give the page of a plan in which every name is markup, and as long as a name may be."""
    long = f"{MARKUP}{'x' * 200}"
    held = workload(long, of=spec(cpu=1, gpu=2), on=[MARKUP], queue=MARKUP, running=10)
    waits = [workload(f"{long}{number}", tasks=2, of=spec(cpu=1, gpu=2), queue=MARKUP) for number in range(3)]
    what = play(cluster([node(MARKUP, cpu=8, gpu=2)], [held, *waits], queues=[queue(MARKUP)]))
    return plan_page(what.before, what.after, plan_json(what))


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("make", [misnamed_page, page, PAGES["plan"][0]])
def test_a_page_is_accessible_and_no_name_is_markup_or_too_wide(browser, make, width, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(make(), encoding="utf-8")
    view = browser.new_page(viewport={"width": width, "height": 900})
    told = []
    view.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    view.goto(path.as_uri())
    assert view.locator("img, script, iframe").count() == 0
    assert view.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    for table in view.locator("td:first-child").all()[:200]:
        assert table.bounding_box()["width"] < width
    found = pytest.importorskip("axe_playwright_python.sync_playwright").Axe().run(view)
    view.close()
    assert told == []
    assert found.violations_count == 0, found.generate_report()


def test_marks_have_tooltips_and_pictures_have_names(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page(), encoding="utf-8")
    view = browser.new_page()
    view.goto(path.as_uri())
    pictures = view.locator("svg[role=img]")
    assert pictures.count() >= 6
    assert all(pictures.nth(index).get_attribute("aria-label") for index in range(pictures.count()))
    task = view.locator("#gantt rect.task title").first.text_content()
    view.close()
    assert "GPU" in task
