"""Looks at the head's page in Chromium while a run trains on two nodes, and after the head has ended.

    page_test.py TROUPE CONFIG FOLDER      exits with 77 if there is no browser

Screenshots go to FOLDER.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

import browser
from cluster import Failed, check, patience
from selenium.webdriver.support.ui import Select
from selenium.webdriver.common.by import By

program, config, shots = sys.argv[1:4]


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
    page.check_believable()
    # The timeline of a run that goes on.
    page.wait("return document.querySelectorAll('.timeline rect.forward').length > 3", "no timeline of a run that trains")
    # What a run has not told is absent: nobody counts the memory of processes on nodes.
    check(page.driver.execute_script("return document.getElementById('chart-memory').hidden"), "memory is drawn though unknown")


def use_controls(page):
    driver = page.driver
    page.hover("#chart-loss svg")
    page.wait("return /step [\\d,]+\\s*book: [\\d.]+/.test(document.querySelector('#chart-loss .tip').innerText)",
              "no tip under the pointer")
    Select(driver.find_element(By.ID, "x")).select_by_value("time")
    page.wait("return /\\d (s|min)/.test(document.querySelector('#chart-loss svg').textContent)", "x is not a time")
    page.click("#log")
    check("x=time" in driver.current_url and "log=1" in driver.current_url, f"the choice is not in {driver.current_url}")
    # The address brings the choice back.
    driver.refresh()
    page.wait("return document.getElementById('x').value === 'time' && document.getElementById('log').checked",
              "the choice is lost when the page is loaded again")
    page.wait("return document.querySelector('#chart-loss path.curve')", "no curve after the page was loaded again")
    page.click(".configuration summary")
    page.wait("return document.querySelector('.configuration pre').innerText.includes('name = \"book\"')", "no configuration")
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


def main():
    os.environ.update(HOME=os.getcwd(), XDG_CONFIG_HOME=os.getcwd())
    with process("head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0", "--http", "127.0.0.1:0",
                 says="its page:") as (head, said):
        os.environ["TROUPE_HEAD"] = re.search(r"leads at tcp://(\S+);", said)[1]
        address = re.search(r"http://\S+/", said)[0]
        with contextlib.ExitStack() as stack:
            for name in ("alpha", "beta"):
                stack.enter_context(process("node", "--name", name, "--cores", "1", says="joined"))
            driver = browser.start()
            stack.callback(driver.quit)
            page = browser.Page(driver, address, shots, "page")
            watch_a_run(page)
            use_controls(page)
            page.look_everywhere()
            with urllib.request.urlopen(address + "api/runs/other") as answer:
                check(json.load(answer)["rows"][-1][0] == 40, "the last step of the second run")
            complaints = page.complaints()
            check(not complaints, f"the browser complains: {complaints}")
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
