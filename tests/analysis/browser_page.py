"""A page in headless Chromium, for the tests of the report."""

import json
import shutil
import time

TRIES = 5


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

    def drawn(self, chart):
        """Scrolls to a chart, and waits until it shows what there is now."""
        self.run(f"(element('{chart}').scrollIntoView(), 1)")
        self.until(f"charts['{chart}'] !== undefined && !outdated.has('{chart}')")

    def shortest(self, path, most):
        """Seconds to open, the shortest of a few: what other processes take of the machine is not the page's."""
        seconds = min(self.open(path) for _ in range(TRIES))
        points = self.run("points.length")
        print(f"{points} points open in {seconds:.2f} s")
        expect(seconds < most, f"the page of {points} points took {seconds:.2f} s")

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
