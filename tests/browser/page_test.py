"""Looks at the head's page in Chromium while a run trains on two nodes, and after the head has ended.

    page_test.py TROUPE CONFIG FOLDER      exits with 77 if there is no browser

Screenshots go to FOLDER. Every wait ends when what it waits for happens, or after `patience` seconds.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

program, config, shots = sys.argv[1:4]
patience = 60

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import Select, WebDriverWait
    from selenium.webdriver.chrome.service import Service
except ImportError:
    print("skipped: python3-selenium is not installed")
    sys.exit(77)
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    print("skipped: chromium and chromium-driver are not installed")
    sys.exit(77)


class Failed(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failed(what)


@contextlib.contextmanager
def process(*words, says):
    """Starts a process, and waits until it says something. Ends it at the end."""
    child = subprocess.Popen([program, *words], stderr=subprocess.PIPE, text=True)
    said = ""
    while says not in said:
        line = child.stderr.readline()
        check(line, f"{words[0]} ended before it said '{says}': {said}")
        said += line
    # Nobody reads on: what else it says must not fill the pipe.
    drain = subprocess.Popen(["cat"], stdin=child.stderr, stdout=subprocess.DEVNULL)
    try:
        yield child, said
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            child.wait(timeout=patience)
        drain.wait(timeout=patience)
        child.stderr.close()


def browser():
    options = webdriver.ChromeOptions()
    # A test has no desktop and no GPU, and may run as root, for which Chromium has no sandbox.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Page:
    def __init__(self, driver, address):
        self.driver = driver
        driver.get(address)

    def wait(self, script, what):
        """Waits until a script returns something true, and returns that."""
        try:
            return WebDriverWait(self.driver, patience, 0.05).until(lambda driver: driver.execute_script(script))
        except Exception as error:
            raise Failed(f"{what}; the page shows: {self.text()[:2000]}") from error

    def text(self):
        return self.driver.execute_script("return document.body.innerText")

    def look(self, width, height, mode):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": mode}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.wait("return document.querySelector('#chart-loss path.curve')?.getBoundingClientRect().width > 0",
                  "there is no loss curve")
        self.driver.execute_script("window.scrollTo(0, 0)")
        self.driver.save_screenshot(os.path.join(shots, f"page-{width}-{mode}.png"))


def row_of(run):
    return f"document.querySelector('tr[data-run=\"{run}\"]')"


def submit(name, steps):
    subprocess.run([program, "submit", config, "--set", f"name={name}", "--set", "pipeline.stages=2",
                    "--set", f"train.steps={steps}", "--set", "train.eval_every=20"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def watch_a_run(page):
    page.wait("return document.getElementById('runs').innerText.includes('No runs yet')", "no note that there are no runs")
    page.wait("return document.querySelectorAll('tr[data-node]').length === 2", "the two nodes are not there")
    submit("book", 1_000_000)
    page.wait(f"return {row_of('book')}?.innerText.includes('running')", "the run does not run")
    page.wait("return Number(document.querySelectorAll('#chart-loss circle').length) >= 2", "no evaluations are drawn")
    for chart in ("loss", "rate", "grad_norm", "lr", "goodput", "bubble"):
        page.wait(f"return document.querySelector('#chart-{chart} path.curve:not(.behind)')?.getAttribute('d').length > 20",
                  f"no curve of {chart}")
    # Steps go on, and no number is one that nobody would believe.
    first = page.wait(f"return Number({row_of('book')}.cells[2].innerText.split('/')[0].replaceAll(',', ''))", "no step")
    page.wait(f"return Number({row_of('book')}.cells[2].innerText.split('/')[0].replaceAll(',', '')) > {first}",
              "the step does not move")
    page.wait(f"return /\\d/.test({row_of('book')}.cells[6].innerText)", "the time left is not known after a while")
    shown = page.text()
    check(not re.search(r"NaN|undefined|Infinity|null", shown), f"the page shows: {shown}")
    # What a run has not told is absent: nobody counts the memory of processes on nodes.
    check(page.driver.execute_script("return document.getElementById('chart-memory').hidden"), "memory is drawn though unknown")


def use_controls(page):
    driver = page.driver
    ActionChains(driver).move_to_element(driver.find_element(By.CSS_SELECTOR, "#chart-loss svg")).perform()
    page.wait("return /step [\\d,]+\\s*book: [\\d.]+/.test(document.querySelector('#chart-loss .tip').innerText)",
              "no tip under the pointer")
    Select(driver.find_element(By.ID, "x")).select_by_value("time")
    page.wait("return /\\d (s|min)/.test(document.querySelector('#chart-loss svg').textContent)", "x is not a time")
    driver.find_element(By.ID, "log").click()
    check("x=time" in driver.current_url and "log=1" in driver.current_url, f"the choice is not in {driver.current_url}")
    # The address brings the choice back.
    driver.refresh()
    page.wait("return document.getElementById('x').value === 'time' && document.getElementById('log').checked",
              "the choice is lost when the page is loaded again")
    page.wait("return document.querySelector('#chart-loss path.curve')", "no curve after the page was loaded again")
    driver.find_element(By.CSS_SELECTOR, "#configuration summary").click()
    page.wait("return document.getElementById('config').innerText.includes('name = \"book\"')", "no configuration")
    # A second run beside the first.
    subprocess.run([program, "stop", "book"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page.wait(f"return {row_of('book')}?.innerText.includes('stopped')", "the run does not stop")
    submit("other", 40)
    page.wait(f"return {row_of('other')}?.innerText.includes('done')", "the second run is not done")
    page.wait(f"const box = {row_of('other')}.querySelector('input'); if (!box.checked) box.click(); return box.checked",
              "the second run cannot be picked")
    page.wait(f"const box = {row_of('book')}.querySelector('input'); if (!box.checked) box.click(); return box.checked",
              "the first run cannot be picked")
    page.wait("return document.querySelectorAll('#chart-loss path.curve:not(.behind)').length === 2",
              "two runs are not drawn beside each other")


def look_everywhere(page):
    for mode, dark in (("light", False), ("dark", True)):
        for width, height in ((1280, 1500), (390, 1800)):
            page.look(width, height, mode)
            over = page.driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            check(over <= 0, f"at {width} pixels the page is {over} pixels too wide")
        back = page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(part) for part in re.findall(r"\d+", back)[:3])
        check((brightness < 200) == dark, f"the background is {back} in {mode} mode")


def main():
    os.environ.update(HOME=os.getcwd(), XDG_CONFIG_HOME=os.getcwd())
    with process("head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0", "--http", "127.0.0.1:0",
                 says="its page:") as (head, said):
        os.environ["TROUPE_HEAD"] = re.search(r"leads at tcp://(\S+);", said)[1]
        address = re.search(r"http://\S+/", said)[0]
        with contextlib.ExitStack() as stack:
            for name in ("alpha", "beta"):
                stack.enter_context(process("node", "--name", name, "--cores", "1", says="joined"))
            driver = browser()
            stack.callback(driver.quit)
            page = Page(driver, address)
            watch_a_run(page)
            use_controls(page)
            look_everywhere(page)
            with urllib.request.urlopen(address + "api/runs/other") as answer:
                check(json.load(answer)["rows"][-1][0] == 40, "the last step of the second run")
            # A script or style from elsewhere, or any error of its own, would stand here.
            wrong = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
            check(not wrong, f"the browser complains: {wrong}")
            head.send_signal(signal.SIGTERM)
            head.wait(timeout=patience)
            page.wait("return document.getElementById('link').innerText.includes('does not answer')",
                      "the page does not say that the head is gone")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            main()
        except Failed as failed:
            sys.exit(f"page_test: {failed}")
