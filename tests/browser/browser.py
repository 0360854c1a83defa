"""Chromium for tests of pages. Screenshots go to a folder, for people to look at.

Importing it ends the program with 77 if there is no browser: `ctest` counts the test as skipped.
"""

import os
import re
import shutil
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "watch"))
from cluster import Failed, check, patience

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("skipped: python3-selenium is not installed")
    sys.exit(77)
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    print("skipped: chromium and chromium-driver are not installed")
    sys.exit(77)

def start():
    options = webdriver.ChromeOptions()
    # A test has no desktop and no GPU, and may run as root, for which Chromium has no sandbox.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Page:
    """A page, and what it shows. Every wait ends when what it waits for happens, or after `patience` seconds."""

    def __init__(self, driver, address, shots, name):
        self.driver = driver
        self.shots = shots
        self.name = name
        driver.get(address)

    def ask(self, script):
        return self.driver.execute_script(script)

    def wait(self, script, what):
        """Waits until a script returns something true, and returns that."""
        try:
            return WebDriverWait(self.driver, patience, 0.05).until(lambda driver: driver.execute_script(script))
        except Exception as error:
            raise Failed(f"{what}; the page shows: {self.text()[:2000]}") from error

    def text(self):
        return self.ask("return document.body.innerText")

    def hover(self, selector):
        ActionChains(self.driver).move_to_element(self.driver.find_element(By.CSS_SELECTOR, selector)).perform()

    def click(self, selector):
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def look(self, width, height, mode):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": mode}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.wait("return document.querySelector('#chart-loss path.curve')?.getBoundingClientRect().width > 0",
                  "there is no loss curve")
        self.ask("window.scrollTo(0, 0)")
        self.driver.save_screenshot(os.path.join(self.shots, f"{self.name}-{width}-{mode}.png"))

    def look_everywhere(self):
        """Looks at the page on a desk and on a telephone, light and dark."""
        for mode, dark in (("light", False), ("dark", True)):
            for width, height in ((1280, 1900), (390, 2600)):
                self.look(width, height, mode)
                over = self.ask("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
                check(over <= 0, f"at {width} pixels the page is {over} pixels too wide")
            back = self.ask("return getComputedStyle(document.body).backgroundColor")
            brightness = sum(int(part) for part in re.findall(r"\d+", back)[:3])
            check((brightness < 200) == dark, f"the background is {back} in {mode} mode")

    def check_believable(self):
        shown = self.text()
        check(not re.search(r"NaN|undefined|Infinity|null|\[object", shown), f"the page shows: {shown}")

    def complaints(self):
        """Returns what the browser complained of: a script or style from elsewhere, a forbidden connection, an error."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
