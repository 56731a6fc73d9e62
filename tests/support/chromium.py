"""A headless Chromium with what the tests of the report ask of it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def missing() -> str | None:
    """Say what is not there for a browser to be driven; None if everything is."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    if CHROMIUM is None:
        return "there is no Chromium"
    return None if DRIVER else "there is no chromedriver"


class Browser:
    """One window. Pages are files; everything that they ask the network for is kept."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def view(self, width: int, scheme: str = "light", height: int = 900) -> None:
        """Set the width of the window in CSS pixels, and the colour scheme that the user prefers."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page: Path) -> None:
        """Open a file."""
        self.driver.get(page.resolve().as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a piece of JavaScript returns."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> list[Any]:
        """Return the elements that a selector finds."""
        return list(self.driver.find_elements("css selector", selector))

    def hover(self, selector: str, place: int = 0) -> Any:
        """Move the pointer over one of the elements, and return it."""
        from selenium.webdriver import ActionChains

        element = self.find(selector)[place]
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.driver, duration=0).move_to_element(element).perform()
        return element

    def press(self, key: str) -> None:
        """Press a key, such as Tab."""
        from selenium.webdriver import ActionChains, Keys

        ActionChains(self.driver, duration=0).send_keys(getattr(Keys, key.upper())).perform()

    def messages(self) -> list[str]:
        """Return what the console has shown since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the last call, but for the page itself."""
        entries = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [entry["params"] for entry in entries if entry["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent if one["type"] != "Document"]

    def screenshot(self, *, full: bool = True) -> str:
        """Return a PNG of the page, or of what is in view, in base64."""
        options = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
            options["clip"] = {**size, "scale": 1}
        return str(self.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"])

    def pdf(self) -> str:
        """Return the page as it is printed, in base64."""
        return str(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = Chrome(options=options, service=Service(DRIVER))
        try:
            browser = Browser(driver)
            driver.get("about:blank")  # away from the browser's own first page, which asks for much
            browser.messages(), browser.requests()
            yield browser
        finally:
            driver.quit()
