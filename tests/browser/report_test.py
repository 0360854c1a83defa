"""Looks at reports of runs in Chromium, as files: nothing serves them.

    report_test.py TROUPE CONFIG FOLDER      exits with 77 if there is no browser

Screenshots go to FOLDER.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import browser
from cluster import Failed, check
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

program, config, shots = sys.argv[1:4]


def run(*words):
    subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def report(driver, name, *runs):
    """Writes a report of runs, checks what its text must not have, and opens it."""
    path = pathlib.Path(f"{name}.html").absolute()
    run("report", *runs, "--out", str(path))
    text = path.read_text()
    without_data = re.sub('<script type="application/json".*?</script>', "", text, flags=re.S)
    elsewhere = re.findall(r"""https?://[^\s"'<>)]*|@import[^;]*|url\([^)]*\)|<[^<>]*\b(?:src|href)=[^\s>]*""", without_data)
    elsewhere = [one for one in elsewhere if one != "http://www.w3.org/2000/svg"]  # A name, which nobody asks for.
    check(not elsewhere, f"{name}: it names another place: {elsewhere}")
    return browser.Page(driver, path.as_uri(), shots, f"report-{name}")


def check_lowest(page):
    """The name of the least loss lies in the chart, and no curve crosses it, however wide and whatever the scale."""
    hidden = """
        const name = document.querySelector('#chart-loss text.lowest'), box = name.getBBox();
        const points = [...document.querySelectorAll('#chart-loss path.curve')].flatMap((curve) => {
          const length = curve.getTotalLength();
          return Array.from({length: 2000}, (_, i) => curve.getPointAtLength(length * i / 1999));
        });
        const svg = document.querySelector('#chart-loss svg');
        if (!name.textContent.includes('lowest possible')) return 'another name';
        if (box.x < 0 || box.x + box.width > svg.clientWidth || box.y + box.height > svg.clientHeight - 18) return 'out of the chart';
        return points.filter((one) => one.x > box.x && one.x < box.x + box.width && one.y > box.y + 2 && one.y < box.y + box.height - 2).length;"""
    for width in (1280, 390):
        page.look(width, 1900, "light")
        for log in ("", "log"):
            if log:
                page.click("#log")
            found = page.ask(hidden)
            check(found == 0, f"at {width} pixels {log} the name of the least loss: {found}")
        page.click("#log")
    page.look(1280, 1900, "light")


def check_command(page):
    """A command takes one line, and all of it is shown when it is opened."""
    closed = page.ask("return document.querySelector('dd details.short').getBoundingClientRect().height")
    check(closed < 30, f"a command takes {closed} pixels")
    command = page.ask("return document.querySelector('.short summary').title")
    check(command.startswith(program) and "--set" in command, f"the pointer shows {command}")
    check(page.ask("return document.querySelector('.short summary').innerText").startswith("troupe train"), "the line is no command")
    page.click(".short summary")
    shown = page.ask("return document.querySelector('dd details.short').innerText")
    check(command in shown, f"an opened command shows {shown}")
    page.click(".short summary")


def look_at_one(driver):
    page = report(driver, "one", "quickstart")
    for chart in ("loss", "rate", "grad_norm", "lr", "goodput", "bubble", "memory"):
        page.wait(f"return document.querySelector('#chart-{chart} path.curve:not(.behind)')?.getAttribute('d').length > 20",
                  f"no curve of {chart}")
    check(page.ask("return document.querySelectorAll('#chart-loss circle').length") == 3, "three evaluations are drawn")
    facts = dict(zip(page.ask("return [...document.querySelectorAll('dt')].map((one) => one.innerText)"),
                     page.ask("return [...document.querySelectorAll('dd')].map((one) => one.innerText)")))
    for name, wanted in (("model", "gpt2, .*layers 2"), ("parameters", "[\\d,]+"), ("data", "Markov"), ("batch", "32 samples"),
                         ("plan", "1f1b, 2 stages"), ("host", "."), ("version", r"\d+\.\d+\.\d+"), ("command", "train"),
                         ("began", r"\d\d:\d\d"), ("took", r"\d (s|min)")):
        check(re.search(wanted, facts.get(name, "")), f"{name} is {facts.get(name)}")
    check_lowest(page)
    check_command(page)
    # The timeline: each device computes, and waits for the other one.
    page.wait("return document.querySelectorAll('.timeline rect.forward').length > 3", "no forward passes")
    check(page.ask("return document.querySelectorAll('.timeline rect.waits').length") == 2, "two devices are drawn")
    check(re.search(r"0F\d: forward, [\d.]+ ms", page.ask("return document.querySelector('.timeline svg').textContent")), "no name of a pass")
    page.click(".configuration summary")
    page.wait("return document.querySelector('.configuration pre').innerText.includes('name = \"quickstart\"')", "no configuration")
    page.hover("#chart-loss svg")
    page.wait("return /step [\\d,]+\\s*quickstart: [\\d.]+/.test(document.querySelector('#chart-loss .tip').innerText)",
              "no tip under the pointer")
    Select(driver.find_element(By.ID, "x")).select_by_value("time")
    page.wait("return /\\d (s|ms|min)/.test(document.querySelector('#chart-loss svg').textContent)", "x is not a time")
    page.click("#log")
    check("x=time" in driver.current_url and "log=1" in driver.current_url, f"the choice is not in {driver.current_url}")
    page.check_believable()
    driver.execute_script("document.querySelector('.configuration').open = false")
    page.look_everywhere()
    return page


def look_at_several(driver):
    page = report(driver, "several", "quickstart", "quickstart.1", "late")
    page.wait("return document.querySelectorAll('#chart-loss path.curve:not(.behind)').length === 3", "three runs are not drawn")
    names = page.ask("return [...document.querySelectorAll('tr[data-run]')].map((row) => row.dataset.run)")
    check(names == ["quickstart", "quickstart.1", "late"], f"the runs are called {names}")
    # An asynchronous run tells how late its gradients were, by stage.
    page.wait("return document.querySelectorAll('#chart-gap-late path.curve:not(.behind)').length === 2", "no gaps of two stages")
    check(page.ask("return document.querySelectorAll('#chart-delays-late rect.bar').length") > 1, "no bars of delays")
    page.click("tr[data-run='quickstart.1'] input")
    page.wait("return document.querySelectorAll('#chart-loss path.curve:not(.behind)').length === 2", "a run cannot be left out")
    check("run=late" in driver.current_url, "the choice of runs is not in the address")
    page.check_believable()
    page.look_everywhere()
    return page


def look_at_stuck(driver):
    """A run that was killed while a player was stuck: the page says what the player waited for."""
    os.makedirs("runs/stuck")
    waits = "action 1F0 waits for the activation of micro-batch 0 from device 0"
    stalled = {"type": "stage.stalled", "who": "stage 1", "what": waits}
    events = [{"type": "run.state", "run": "stuck", "state": "running", "time": 1}, {"type": "step", "step": 1, "loss": 3, "time": 3},
              {**stalled, "what": "it is over", "time": 4}, {"type": "step", "step": 2, "loss": 2, "time": 5},
              {**stalled, "seconds": 10, "time": 15}, {**stalled, "seconds": 20, "time": 25}]
    pathlib.Path("runs/stuck/events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    page = report(driver, "stuck", "stuck")
    notes = page.wait("return [...document.querySelectorAll('.waits-for')].map((note) => note.innerText)", "no note of a stuck player")
    check(len(notes) == 1 and re.fullmatch(rf"no step since \d\d:\d\d:\d\d: stalled: stage 1: {waits}", notes[0]), f"the notes are {notes}")
    return page


def look_at_hostile(driver):
    """A run whose texts try to become markup, or to load something."""
    os.makedirs("runs/hostile")
    evil = "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\"><!--<script>"
    events = [{"type": "run.state", "run": evil, "state": "failed", "why": evil, "time": 1}, {"type": "warn", "text": evil, "time": 2},
              {"type": "step", "step": 1, "loss": 3, "time": 3}, {"type": "step", "step": 2, "loss": 2, "time": 4},
              {"type": "node.straggler", "node": evil, "cause": evil, "device": 0, "time": 5}]
    pathlib.Path("runs/hostile/events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events) + evil + "\n")
    pathlib.Path("runs/hostile/config.toml").write_text(f"name = '''{evil}'''\n[model]\nkind = '''{evil}'''\n")
    page = report(driver, "hostile", "hostile")
    page.wait("return document.querySelector('#chart-loss path.curve')", "no curve")
    page.wait("return document.querySelectorAll('.told li').length >= 3", "no events")
    check(page.ask("return document.querySelectorAll('main script, main img').length") == 0, "a text became markup")
    check(page.ask("return document.title") != "broken", "a script of a text ran")
    check("</script><script>" in page.text(), "the text is not shown as it is")
    # Whatever a page tries, the browser forbids connections.
    check(page.ask("return fetch('http://127.0.0.1:9/').then(() => 'connected', (error) => error.name)") == "TypeError", "it can connect")
    complaints = page.complaints()
    check(complaints and all("Content Security Policy" in one for one in complaints), f"no policy forbade it: {complaints}")


def main():
    two = ("--set", "pipeline.stages=2", "--set", "train.eval_every=40", "--set", "train.steps=120")
    run("train", config, *two)
    run("train", config, *two, "--set", "optimizer.lr=0.01")
    run("train", config, *two, "--set", "name=late", "--set", "pipeline.schedule=pipedream")
    driver = browser.start()
    try:
        for look in (look_at_one, look_at_several, look_at_stuck):
            complaints = look(driver).complaints()
            check(not complaints, f"the browser complains: {complaints}")
        look_at_hostile(driver)
    finally:
        driver.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            main()
        except Failed as failed:
            sys.exit(f"report_test: {failed}")
