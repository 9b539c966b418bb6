#!/usr/bin/python3
"""The report in a real browser (headless Chromium): browser_test.py BIN FOLDER.

It runs two small sweeps with the programs in BIN and adds a record with HTML in its strings. The page must open in under 2 s with
no network request and no message on the console, and filter, sort, chart toggles, keyboard, theme and download must do what they
say. FOLDER keeps the page and screenshots of it in light and dark. Exits with 77 (skipped) where there is no Chromium.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

MOST_SECONDS = 2.0
TRIES = 5
HOSTILE = '<img src=x onerror="window.broken=true"></script><script>window.broken=true</script>'


SWEEPS = [
    {"schema": "verbscope.sweep/1", "benchmark": "send_rate", "repetitions": 2,
     "fixed": {"connection": "UD", "inline_size": 256, "duration": "50us", "warmup": "50us"},
     "vary": {"threads": [1, 8], "size": [16, 60, 128], "post_list": [1, 4, 16]}},
    {"schema": "verbscope.sweep/1", "benchmark": "verb_latency", "fixed": {"duration": "200us", "warmup": "50us"},
     "vary": {"size": [16, 1024]}},
]


def hostile_record(record):
    record = json.loads(json.dumps(record))
    record["config"]["point"]["params"]["cores"] = HOSTILE
    record["config"]["point"]["params"]["note"] = HOSTILE
    record["config"]["note"] = HOSTILE
    record["environment"]["hostname"] = HOSTILE
    return record


def make_results(binaries, folder):
    """The records of the sweeps, and a hostile one; yields their number."""
    results = folder / "few.jsonl"
    for sweep in SWEEPS:
        (folder / "sweep.json").write_text(json.dumps(sweep))
        subprocess.run([binaries / "verbscope", "run", folder / "sweep.json", "--hosts", "sim:cib", "--out", results],
                       check=True, stdout=subprocess.DEVNULL, timeout=240)
    lines = results.read_text().splitlines()
    lines.append(json.dumps(hostile_record(json.loads(lines[0]))))
    results.write_text("".join(line + "\n" for line in lines))
    return len(lines)


class Page:
    def __init__(self, folder):
        from selenium import webdriver  # pylint: disable=import-outside-toplevel
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                         "--window-size=1300,1000", "--disable-background-networking"):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)

    def open(self, path):
        """Seconds until the page said that it is ready."""
        self.driver.get("about:blank")
        start = time.monotonic()
        self.driver.get(path.as_uri())
        self.until("document.documentElement.dataset.ready === 'true'")
        return time.monotonic() - start

    def run(self, script):
        return self.driver.execute_script("return " + script)

    def until(self, condition):
        deadline = time.monotonic() + 60
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"never: {condition}")
            time.sleep(0.01)

    def requests(self):
        """Addresses that were asked for, but those of the page itself."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.startswith(("file:", "about:", "data:", "blob:"))]


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def check_filter(page, total):
    page.run("(element('filter').value = 'post_list=16', element('filter').dispatchEvent(new Event('input')), 1)")
    shown = page.run("state.shown.length")
    expect(0 < shown < total, f"the filter leaves {shown} of {total}")
    expect(page.run("[...document.querySelectorAll('#table tbody tr')].every(row => row.textContent.includes('post_list=16'))"),
           "a row does not have the filter's words")
    page.run("(element('filter').value = '', element('filter').dispatchEvent(new Event('input')), 1)")
    expect(page.run("state.shown.length") == total, "without a filter all points are shown")


def check_sort(page):
    click = "document.querySelector('th button[data-key=rate]').click()"
    rates = "state.shown.map(point => point.rate).filter(rate => rate !== null)"
    page.run(f"({click}, 1)")
    first = page.run(rates)
    expect(first == sorted(first, reverse=True), "one click sorts rates from the highest")
    page.run(f"({click}, 1)")
    expect(page.run(rates) == sorted(first), "another sorts from the lowest")
    expect(page.run("document.querySelector('th[aria-sort=ascending] button').dataset.key") == "rate", "the head says so")


def check_charts(page):
    names = "JSON.parse(element('rate-chart').dataset.series)"
    page.run("(element('benchmark').value = 'send_rate', element('benchmark').dispatchEvent(new Event('change')), 1)")
    expect(any("model bound" in name for name in page.run(names)), "model bounds are drawn")
    page.run("(element('bounds').click(), 1)")
    expect(not any("model bound" in name for name in page.run(names)), "and go when they are switched off")
    expect(page.run("charts['rate-chart'].getOption().title[0].text.includes('SIMULATED')"), "the chart says simulated")
    for chart in ("rate-chart", "bytes-chart", "residual-chart", "latency-chart"):
        expect(page.run(f"charts['{chart}'].getOption().title[0].text.includes('SIMULATED')"), f"{chart} says simulated")
        expect(page.run(f"document.querySelector('#{chart} canvas') !== null"), f"{chart} is drawn")
    name = page.run(names)[0]
    page.run(f"(charts['rate-chart'].dispatchAction({{type: 'legendToggleSelect', name: {json.dumps(name)}}}), 1)")
    expect(page.run(f"charts['rate-chart'].getOption().legend[0].selected[{json.dumps(name)}]") is False,
           "a click in the legend hides a curve")


def check_keyboard(page):
    page.run("(document.querySelector('#table tbody tr').focus(), 1)")
    page.run("(document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true})), 1)")
    expect(page.run("state.chosen !== null && element('point').textContent.includes(state.chosen.id)"),
           "Enter on a row chooses its point")
    expect(page.run("JSON.parse(element('loads-chart').dataset.series).length") == 2, "its loads are drawn")


def check_theme(page, folder):
    before = page.run("getComputedStyle(document.body).backgroundColor")
    page.driver.save_screenshot(str(folder / "report-light.png"))
    page.run("(element('theme').click(), 1)")
    expect(page.run("getComputedStyle(document.body).backgroundColor") != before, "the theme changes")
    page.driver.save_screenshot(str(folder / "report-dark.png"))


def check_download(page, folder, total):
    page.run("(element('download').click(), 1)")
    target = folder / "records.jsonl"
    deadline = time.monotonic() + 30
    while not target.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = target.read_text().splitlines()
    expect(len(lines) == total, f"{len(lines)} records came of {total}")
    expect(all(json.loads(line)["schema"] == "verbscope.record/1" for line in lines), "each is a record")


def main():
    binaries, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    try:
        import selenium  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        selenium = None
    if selenium is None or not shutil.which("chromedriver"):
        print("skipped: there is no chromium-driver or no python3-selenium")
        return 77
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    total = make_results(binaries, folder)
    subprocess.run([binaries / "verbscope", "report", folder / "few.jsonl", "-o", folder / "few.html"], check=True)
    page = Page(folder)
    try:
        # The shortest of a few: what other processes take of the machine is not the page's.
        seconds = MOST_SECONDS
        for _ in range(TRIES):
            seconds = min(seconds, page.open(folder / "few.html"))
        print(f"{total} points open in {seconds:.2f} s")
        expect(seconds < MOST_SECONDS, f"the page took {seconds:.2f} s")
        expect(page.run("state.shown.length") == total, "every point is there")
        check_filter(page, total)
        check_sort(page)
        check_charts(page)
        check_keyboard(page)
        check_theme(page, folder)
        check_download(page, folder, total)
        expect(page.run("window.broken === undefined"), "HTML of a record ran")
        expect(page.requests() == [], f"the page asked for {page.requests()}")
        messages = page.driver.get_log("browser")
        expect(messages == [], f"the console says {messages}")
    finally:
        page.driver.quit()
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
