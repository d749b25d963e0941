"""The documentation as a site: it is built without a network, and read without one."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tenure.cli.main import COMMANDS
from tenure.plugins import __all__ as importable

ROOT = Path(__file__).resolve().parents[2]
MKDOCS = Path(sys.executable).with_name("mkdocs")

pytestmark = [
    pytest.mark.skipif(not MKDOCS.exists(), reason="needs mkdocs, which make install brings"),
    pytest.mark.xdist_group("site"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site, strictly: a link, an anchor or a page outside the navigation that is wrong fails."""
    place = tmp_path_factory.mktemp("site")
    away = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    command = [str(MKDOCS), "build", "--quiet", "--site-dir", str(place)]
    if shutil.which("unshare") and subprocess.run(["unshare", "--net", "true"], check=False).returncode == 0:
        command = ["unshare", "--net", *command]
    environment = {**os.environ, **away, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


class _Fetched(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.found.append(given.get("src") or "")
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.found.append(given.get("href") or "")


def test_no_page_fetches_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        reader = _Fetched()
        reader.feed(page.read_text())
        assert [address for address in reader.found if re.match(r"(https?:)?//", address)] == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text()), sheet.name


def test_every_page_of_docs_is_there(site):
    pages = {page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")}


def test_the_reference_has_every_command_and_every_name_that_plugins_may_import(site):
    commands = (site / "reference" / "commands.html").read_text()
    assert [name for name in COMMANDS if f"Usage: tenure {name} " not in commands] == []
    api = (site / "reference" / "plugin-api.html").read_text()
    assert [name for name in importable if name not in api] == []
    assert "allow_victim" in api


def test_what_is_searched_lies_beside_the_pages(site):
    index = json.loads((site / "search" / "search_index.json").read_text())
    assert any(entry["location"].startswith("how-to/sweeps.html") for entry in index["docs"])
