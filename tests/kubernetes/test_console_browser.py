"""The console on a real control plane in a real browser: logged in by a token, renewed as the cluster changes."""

from tests.browser.test_console import Watched, axe
from tests.browser.test_pages import browser  # noqa: F401  the fixture
from tests.kubernetes.test_console import console, installed, pod  # noqa: F401  the fixture


def logged_in(found, token):
    """Give the token on the page that asks for it, as somebody would."""
    found.go("/")
    assert found.page.url.endswith("/login")
    found.page.get_by_label("token").fill(token)
    found.page.get_by_role("button", name="Log in").click()
    found.settle()


def test_somebody_logs_in_sees_a_change_by_itself_and_logs_out(browser, installed):  # noqa: F811
    token = installed.token_of("tenure", "tenure-system")
    with console(installed, "--host=0.0.0.0") as ask, Watched(browser, ask.root) as found:
        logged_in(found, token)
        assert found.page.locator("h1").text_content() == "Overview"
        assert "no scheduler leads" in found.page.locator(".alerts").text_content()
        found.until("document.querySelector('[hx-get=\"/me\"]').textContent.endsWith('tenure-system:tenure')")
        found.go("/workloads")
        installed.client().create("/api/v1/namespaces/red/pods", pod("red-later", "red"))
        found.until("document.querySelector('#list').textContent.includes('red/red-later')")
        found.page.get_by_role("link", name="red/red-later").click()
        found.settle()
        assert found.page.locator("h1").text_content() == "red/red-later"
        assert axe(found.page).violations_count == 0
        assert found.told == []
        assert found.elsewhere == []
        found.page.get_by_role("button", name="log out").click()
        found.until("location.pathname === '/login'")
        found.go("/workloads")
        assert found.page.url.endswith("/login")


def test_a_tenant_in_a_browser_sees_their_own(browser, installed):  # noqa: F811
    with console(installed, "--host=0.0.0.0") as ask, Watched(browser, ask.root) as found:
        logged_in(found, installed.token_of("tenant", "red"))
        for path in ("/", "/workloads", "/queues", "/evictions", "/timeline", "/whatif"):
            found.go(path)
            text = found.page.locator("body").text_content()
            assert "blue-waits" not in text
            assert "node-0" not in text
        found.go("/workloads/blue/blue-waits")
        assert "nothing of that name" in found.page.locator("main").text_content()
