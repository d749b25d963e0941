"""The console in a real browser: every view at three widths, light and dark, by keyboard, and as axe wants it."""

import importlib
import re
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

import pytest
from tests.browser.test_pages import browser  # noqa: F401  the fixture
from tests.effort import THOROUGH
from tests.web.consoles import MARKUP, hostile, served, small
from tests.web.simulated import simulated_history
from tests.web.test_senders import Server

from tenure.web.login import Logins
from tenure.web.routes import change_streams
from tenure.web.sources.past import PastSource
from tenure.web.sources.picture import Picture
from tenure.web.sources.still import StillSource

VIEWS = {
    "overview": "/", "queues": "/queues", "queue": "/queue?name=b", "workloads": "/workloads",
    "workload": "/workloads/team-b/longest", "nodes": "/nodes", "node": "/node?name=gpu-2", "moves": "/moves",
    "drain": "/moves?drain=gpu-2", "evictions": "/evictions", "timeline": "/timeline", "whatif": "/whatif",
    "changed": "/whatif?set=queue.b.guaranteed.nvidia.com%2Fgpu%3D12", "nothing": "/workloads/team-b/nobody",
    "astray": "/no/such/page",
}  # fmt: skip


def playwright():
    """Give Playwright; only who uses it takes the second to load it."""
    return importlib.import_module("playwright.sync_api")


def axe(page):
    """Give what axe says of a page."""
    return importlib.import_module("axe_playwright_python.sync_playwright").Axe().run(page)


@pytest.fixture(scope="module")
def address():
    with served(small()) as found:
        yield found


class Watched:
    """A page, with what it complained of and what it asked for from elsewhere."""

    def __init__(self, chromium, address, width=900, scheme="light"):
        self.address = address
        self.page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.told, self.elsewhere = [], []
        self.page.on("console", lambda message: self.told.append(message.text))
        self.page.on("pageerror", lambda error: self.told.append(str(error)))
        self.page.on("request", lambda request: request.url.startswith(address) or self.elsewhere.append(request.url))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.page.close()

    def in_a_window(self, width, scheme):
        """Go on in a window of another width or scheme; what was told and asked for before is forgotten."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.told.clear()
        self.elsewhere.clear()
        return self

    def go(self, path):
        """Open a view, and wait until nothing is on its way."""
        self.page.goto(self.address + path)
        self.settle()

    def follow(self, link):
        """Click what leads to another page, and wait until nothing is on its way there."""
        with self.page.expect_navigation():
            link.click()
        self.settle()

    def settle(self):
        """Wait until nothing is being worked out any more."""
        self.until("!document.querySelector('.later')")
        self.until("[...document.querySelectorAll('[data-series]')].every((one) => one.firstChild)")

    def until(self, condition):
        """Wait until something holds in the page, which itself may not evaluate texts."""
        for _ in range(600):
            with suppress(playwright().Error):  # it is just being left
                if self.page.evaluate(condition):
                    return
            self.page.wait_for_timeout(100)
        raise AssertionError(condition)

    @property
    def overflow(self):
        """How far the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    @property
    def beyond(self):
        """What stands out of its section, and is not in a part that scrolls."""
        return self.page.evaluate("""() => {
            const scrolls = (one) => getComputedStyle(one).overflowX !== "visible";
            const out = (one) => {
              const section = one.closest("section"), box = one.getBoundingClientRect();
              for (let up = one; up && up !== section; up = up.parentElement) if (scrolls(up)) return false;
              return section && box.width > 1 && box.right > section.getBoundingClientRect().right + 1;
            };
            const all = [...document.querySelectorAll("main section *")];
            return all.filter(out).map((one) => one.outerHTML.slice(0, 80));
        }""")


@pytest.fixture
def opened(browser, address):  # noqa: F811  the fixture
    with Watched(browser, address) as found:
        yield found


@pytest.fixture(scope="module")
def kept(browser, address):  # noqa: F811  the fixture
    """Give a page that stays open: a new one takes four times as long as to load the next view in it."""
    with Watched(browser, address) as found:
        yield found


WINDOWS = [(width, scheme) for width in (360, 900, 1600) for scheme in ("light", "dark")]
READ = {(360, "light"), (1600, "dark")} if not THOROUGH else set(WINDOWS)
"""Windows in which axe reads a view: both schemes, the narrowest layout and the widest. By hand it is all of them."""


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_and_is_accessible(kept, view):
    """In windows of three widths, light and dark: opened in each width, and then seen in the other scheme."""
    for width, scheme in WINDOWS:
        found = kept.in_a_window(width, scheme)
        if scheme == WINDOWS[0][1]:
            found.go(VIEWS[view])
        assert found.page.evaluate("innerWidth") == width
        assert found.overflow <= 0, (width, scheme)
        assert found.beyond == [], (width, scheme)
        assert [text for text in found.told if "404" not in text] == [], (width, scheme)
        assert found.elsewhere == [], (width, scheme)
        background = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(part) for part in background[4:-1].split(","))
        assert (brightness > 600) is (scheme == "light"), (width, scheme)
        if (width, scheme) in READ:
            result = axe(found.page)
            assert result.violations_count == 0, (width, scheme, result.generate_report())


def test_a_page_below_a_view_says_which_view_that_is(opened):
    """What the first of the crumbs names is the place in the navigation."""
    for path in ("/queue?name=b", "/workloads/team-b/longest", "/node?name=gpu-2", "/moves", "/moves?drain=gpu-2"):
        opened.go(path)
        above = opened.page.locator(".crumbs a").first.text_content()
        assert opened.page.locator(".top nav a[aria-current]").all_text_contents() == [above], path


def test_the_way_is_found_by_keyboard_alone(opened):
    opened.go("/")
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate("document.activeElement.id") == "main"
    opened.go("/nodes")
    first = opened.page.locator(".heat a").first
    first.focus()
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_url("**/node?name=gpu-0")


def test_who_took_the_room_of_the_one_that_waited_longest_is_two_clicks_away(opened):
    """From the overview to the workload, which says it, and on to whoever it was."""
    opened.go("/")
    opened.follow(opened.page.locator("#longest a.name").first)
    assert opened.page.locator("h1").text_content() == "team-b/longest"
    opened.follow(opened.page.locator("#takers tbody a.name").first)
    assert opened.page.locator("h1").text_content() == "team-a/first"


def test_a_story_is_followed_from_an_eviction_to_who_caused_it(opened):
    opened.go("/evictions")
    opened.follow(opened.page.get_by_role("link", name="team-a/first").first)
    assert opened.page.locator("h1").text_content() == "team-a/first"
    story = opened.page.locator("#story")
    assert "preempt" in story.text_content()
    opened.follow(story.get_by_role("link", name="team-b/late"))
    assert opened.page.locator("h1").text_content() == "team-b/late"
    assert "made room" in opened.page.locator("#story").text_content()


def test_what_if_is_played(opened):
    """A quota is raised, a workload is added, one change is left out again; the address holds what is changed."""
    opened.go("/whatif")
    form = opened.page.locator("form", has=opened.page.locator("input[value=add]"))
    form.locator("input[name=name]").fill("asked")
    form.locator("select[name=queue]").select_option("a")
    form.locator("input[name=gpu]").fill("1")
    opened.follow(form.get_by_role("button"))
    assert "default/asked" in opened.page.locator("#result").text_content()
    form = opened.page.locator("form", has=opened.page.locator("input[value=quota]"))
    form.locator("select[name=queue]").select_option("a")
    form.locator("input[name=amount]").fill("0")
    opened.follow(form.get_by_role("button"))
    assert opened.page.locator("#changes li").count() == 2
    assert "set=queue.a.max.nvidia.com" in opened.page.url
    opened.follow(opened.page.get_by_role("link", name="Leave out queue.a.max"))
    assert opened.page.locator("#changes li").count() == 1
    opened.go("/whatif?set=queue.nobody.max.cpu%3D1")
    assert "there is no queue" in opened.page.get_by_role("alert").text_content()


def test_the_time_line_is_scrubbed(opened):
    opened.go("/timeline")
    assert opened.page.locator(".uplot canvas").count() == 1
    told = opened.page.locator("#moment h2").first.text_content()
    opened.page.locator("#moment-range").focus()
    opened.page.keyboard.press("Home")
    opened.until(f"document.querySelector('#moment h2').textContent !== {told!r}")
    assert "at=" in opened.page.url
    assert "waiting" in opened.page.locator("#moment").text_content()


def test_searching_shows_what_is_found_and_keeps_the_address(opened):
    opened.go("/workloads")
    opened.page.locator("input[type=search]").fill("SMALL")
    opened.until("document.querySelectorAll('#list tbody tr').length === 1")
    assert "q=SMALL" in opened.page.url


@pytest.fixture(scope="module")
def misnamed(browser):  # noqa: F811  the fixture
    """Give a page that stays open, on a console over names with markup; it notes whether any of them runs."""
    with served(hostile()) as address, Watched(browser, address) as found:
        found.page.add_init_script("window.alert = () => { window.ran = true; }")
        yield found


@pytest.mark.parametrize("path", [
    "/", "/queues", "/queue?name={1}", "/workloads", "/workloads/{0}/{0}", "/workloads/{0}/{1}", "/nodes",
    "/node?name={0}", "/moves", "/moves?drain={0}", "/evictions", "/evictions?queue={1}", "/timeline", "/whatif",
    "/whatif?set=queue.{1}.max.cpu%3D1", "/workloads?q={0}", "/whatif?set={0}", "/queue?name={2}x",
])  # fmt: skip
def test_names_with_markup_are_text_in_every_field(misnamed, path):
    names = [quote(f"{MARKUP}{number}", safe="") for number in range(3)]
    found = misnamed.in_a_window(900, "light")
    found.go(path.format(*names))
    assert found.page.evaluate("window.ran") is None
    assert found.page.locator("img").count() == 0
    assert found.overflow <= 0
    assert not [text for text in found.told if not re.search("40[04]", text)]


def test_a_page_whose_session_has_ended_goes_to_the_log_in(browser):  # noqa: F811
    """It renews a part of itself, and would be left empty."""
    source = StillSource(small(), "a file")
    logins = Logins(Server(), source, required=True)
    with served(source, whose=logins.whose, more=logins.routes) as address, Watched(browser, address) as found:
        found.go("/workloads")
        found.page.get_by_label("token").fill("good")
        found.follow(found.page.get_by_role("button", name="Log in"))
        found.go("/workloads")
        logins._sessions.clear()
        with suppress(playwright().Error):  # where it renewed itself before, it is there already
            found.page.locator("input[type=search]").fill("small", timeout=5000)
        found.until("location.pathname === '/login'")


class Living(StillSource):
    """A cluster that changes when it is told so."""

    is_live = True
    number = 1

    @property
    def version(self):
        return self.number

    def becomes(self, cluster):
        self._picture = Picture.of(cluster)
        self.number += 1


def test_a_page_whose_stream_was_refused_asks_for_it_again_and_misses_nothing(browser, monkeypatch):  # noqa: F811
    """Browsers give up a stream that is refused once; what changed until there is one again is shown all the same."""
    source = Living(small(), "a cluster")
    with served(source) as address, Watched(browser, address) as found:
        found.go("/workloads")
        found.until("!document.querySelector('#live-state.lost')")
        with found.page.expect_response(lambda answer: answer.url.endswith("/changes") and answer.status == 503):
            found.page.evaluate("new Promise((done) => setTimeout(done, 500))")
            monkeypatch.setattr(change_streams, "MOST_STREAMS", 0)
            monkeypatch.setattr(change_streams, "STREAM_SECONDS", 0.0)
            source.becomes(replace(small(), workloads=small().workloads[:2]))  # told by the stream, which ends then
            found.until("document.querySelectorAll('#list tbody tr').length === 2")
        source.becomes(replace(small(), workloads=small().workloads[:1]))
        monkeypatch.setattr(change_streams, "MOST_STREAMS", 1000)
        monkeypatch.setattr(change_streams, "STREAM_SECONDS", 3600.0)
        found.until("document.querySelectorAll('#list tbody tr').length === 1")


def test_pages_of_elsewhere_are_refused(browser, address):  # noqa: F811
    """A page of another origin asks, in the same browser: it is neither answered nor shown in a frame."""
    with served(small()) as elsewhere, Watched(browser, elsewhere) as found:
        found.go("/")
        for way in ({}, {"mode": "no-cors"}):
            read = found.page.evaluate(
                "async ([url, way]) => fetch(url, way).then((a) => a.text(), () => 'refused')",
                [f"{address}/api/v1/overview", way],
            )
            assert read in ("refused", "")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Give the address of a console over what the demo simulates, only less of it."""
    history = simulated_history(tmp_path_factory.mktemp("simulated"), jobs=300, gpus=32)
    with served(PastSource(history)) as found:
        yield found


def test_in_a_simulation_it_is_found_out_within_three_clicks(browser, simulated):  # noqa: F811
    """Who took the room of the workload that waited longest: it is among those that started while it waited."""
    with Watched(browser, simulated) as found:
        found.go("/")
        longest = found.page.locator("#longest a.name").first
        name = longest.text_content()
        found.follow(longest)
        assert found.page.locator("h1").text_content() == name
        took = found.page.locator("#takers tbody tr").first
        assert re.search("evicted for this one|came later|started while", took.text_content())
        found.follow(took.locator("a.name").first)
        assert found.page.locator("#story li").count() >= 2
        assert found.told == []


def test_why_a_workload_waited_is_a_click_away_from_its_story(browser, simulated):  # noqa: F811
    """The simulation has ended, and so has the workload; its page as it was then says why, and what it would take."""
    with Watched(browser, simulated) as found:
        found.go("/")
        assert "nothing runs or waits" in found.page.locator("main").text_content()
        found.follow(found.page.locator("#longest a.name").first)
        assert found.page.locator("#why").count() == 0
        found.follow(found.page.get_by_role("link", name="Why did it wait then?").first)
        assert "as it was" in found.page.locator(".where").text_content()
        assert found.page.locator("#why li").count() >= 1
        assert found.page.locator("#takes li").count() >= 1
        assert found.overflow <= 0
        assert axe(found.page).violations_count == 0


def test_a_simulation_is_scrubbed_to_a_moment_at_which_it_ran(browser, simulated):  # noqa: F811
    with Watched(browser, simulated) as found:
        found.go("/timeline")
        begin, end = (int(found.page.locator("#moment-range").get_attribute(name)) for name in ("min", "max"))
        found.page.locator("#moment-range").fill(str((begin + end) // 2))
        found.until("/at=/.test(location.href)")
        found.until("/running/.test(document.querySelector('#moment').textContent)")
        found.follow(found.page.get_by_role("link", name="The overview at that moment"))
        assert "as it was" in found.page.locator(".where").text_content()
        assert found.overflow <= 0


def test_no_column_of_its_evictions_is_cut_and_no_table_is_empty(browser, simulated):  # noqa: F811
    with Watched(browser, simulated, width=900) as found:
        found.go("/evictions")
        scrolls = "(one) => one.scrollWidth - one.clientWidth"
        assert found.page.locator("#list .scroll").first.evaluate(scrolls) <= 0
        found.go("/workloads")
        assert found.page.locator("table").count() == 0
        assert "nothing runs or waits" in found.page.locator("#list").text_content()


def test_evictions_of_a_simulation_say_whether_they_paid(browser, simulated):  # noqa: F811
    with Watched(browser, simulated) as found:
        found.go("/evictions?paid=yes")
        rows = found.page.locator("#list tbody tr")
        assert rows.count() > 0
        assert all("paid" in text and "did not" not in text for text in rows.all_text_contents())
