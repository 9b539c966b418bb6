#!/usr/bin/python3
"""The report in a real browser (headless Chromium): browser_test.py BIN FOLDER.

browser_charts.py has what must hold of the charts, on a page of a paper's figure. Here it runs two small sweeps with the programs in BIN and adds a record with HTML in its strings. The page must open in under 2 s
with no network request and no message on the console, and filter, sort, chart toggles, keyboard, theme, print and download
must do what they say. So must a page of 10,000 points made of those records, which may take 3 s. FOLDER keeps the pages and
screenshots in light and dark. Exits with 77 (skipped) where there is no Chromium.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

from browser_charts import check_files, check_paper
from browser_page import Page, expect

# Far above what a quiet machine takes (docs/analysis.md): other tests run beside this one.
MOST_SECONDS = 6.0
MANY = 10_000
MOST_SECONDS_MANY = 15.0
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


def make_paper(binaries, folder):
    """A page of Figure 12 of ATC 2016 on two clusters, shortened."""
    for benchmark, options in (("read_rate", {}), ("write_rate", {"connection": "UC", "inline_size": 128})):
        sweep = {"schema": "verbscope.sweep/1", "benchmark": benchmark, "figure": "atc16 Fig 12",
                 "fixed": {"direction": "in", "threads": 8, "duration": "50us", "warmup": "50us", **options},
                 "points": [{"label": benchmark[:-5].upper(), "qp": 4, "fabrics": ["sim:cib"]},
                            {"label": benchmark[:-5].upper(), "qp": 2, "fabrics": ["sim:cx3"]}],
                 "vary": {"size": [16, 32, 64, 256]}}
        (folder / "sweep.json").write_text(json.dumps(sweep))
        subprocess.run([binaries / "verbscope", "run", folder / "sweep.json", "--hosts", "sim:cib,sim:cx3", "--out",
                        folder / "paper.jsonl"], check=True, stdout=subprocess.DEVNULL, timeout=240)
    (folder / "new.jsonl").write_bytes((folder / "paper.jsonl").read_bytes())
    for page, files in (("paper", ["paper"]), ("files", ["paper", "new"])):
        subprocess.run([binaries / "verbscope", "report", *(folder / f"{name}.jsonl" for name in files), "-o", folder / f"{page}.html"], check=True)


def make_many(few, results):
    """MANY points: the records of `few`, each with other queue depths. The parts are left out, for the size of the file."""
    records = [json.loads(line) for line in few.read_text().splitlines()]
    for record in records:
        for part in ("threads", "clients"):
            record["result"].pop(part, None)
    with results.open("w") as file:
        for i in range(MANY):
            record = records[i % len(records)]
            record["config"]["tx_depth"] = record["config"]["point"]["params"]["tx_depth"] = 128 + i // len(records)
            file.write(json.dumps(record) + "\n")


def check_filter(page, total):
    page.run("(element('filter').value = 'post_list=16', element('filter').dispatchEvent(new Event('input')), 1)")
    shown = page.run("state.shown.length")
    expect(0 < shown < total, f"the filter leaves {shown} of {total}")
    expect(page.run("[...document.querySelectorAll('#table tbody tr[data-id]')].every(row => row.textContent.includes('post_list=16'))"),
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
    page.drawn("rate-chart")
    page.run("(element('benchmark').value = 'send_rate', element('benchmark').dispatchEvent(new Event('change')), 1)")
    expect(any("model bound" in name for name in page.run(names)), "model bounds are drawn")
    page.run("(element('bounds').click(), 1)")
    expect(not any("model bound" in name for name in page.run(names)), "and go when they are switched off")
    for chart in ("rate-chart", "bytes-chart", "residual-chart", "latency-chart"):
        page.drawn(chart)
        expect(page.run(f"charts['{chart}'].getOption().title[0].text.includes('SIMULATED')"), f"{chart} says simulated")
        expect(page.run(f"document.querySelector('#{chart} canvas') !== null"), f"{chart} is drawn")
    page.drawn("rate-chart")
    button = "element('rate-chart-legend').querySelector('button')"
    name = page.run(f"{button}.dataset.curve")
    expect(name in page.run(names), "the legend has the name of a curve")
    page.run(f"({button}.click(), 1)")
    expect(name not in page.run(names) and page.run(f"{button}.getAttribute('aria-pressed')") == "false",
           "a click in the legend hides the curve")
    page.run(f"({button}.click(), 1)")
    expect(name in page.run(names), "and another shows it again")


def check_latency(page):
    """A latency benchmark is shown by its median without being asked."""
    page.run("(element('benchmark').value = 'verb_latency', element('benchmark').dispatchEvent(new Event('change')), 1)")
    page.drawn("rate-chart")
    expect(page.run("element('result').value") == "lat_p50_ns", "the result is the median")
    expect(page.run("charts['rate-chart'].getOption().yAxis[0].name") == "median latency (ns)", "and the axis says so")
    page.run("(element('benchmark').value = 'send_rate', element('benchmark').dispatchEvent(new Event('change')), 1)")


def check_repetitions(page):
    """Two runs of each point: the curve has one place for each, their mean, and a stroke as long as the interval."""
    page.run("(element('option').value = 'size', element('option').dispatchEvent(new Event('change')), 1)")
    page.drawn("rate-chart")
    series = page.run("charts['rate-chart'].getOption().series.map(({id, data}) => ({id, data}))")
    strokes = {one["id"]: one["data"] for one in series if one["id"].endswith(", interval")}
    expect(len(strokes) >= 2, f"{len(strokes)} curves have intervals")
    for one in series:
        if one["id"] + ", interval" not in strokes:
            continue
        places = [point[0] for point in one["data"]]
        expect(places == sorted(set(places)), f"a curve goes back and forth: {places}")
        ends = strokes[one["id"] + ", interval"]
        for i, (x, mean, reach, runs, index) in enumerate(one["data"]):
            rates = page.run(f"points.filter(point => point.benchmark === 'send_rate' && JSON.stringify(point.options) === "
                             f"JSON.stringify(points[{index}].options)).map(point => point.rate)")
            expect(page.run(f"Number(points[{index}].options.size)") == x, "the point is the one at its place")
            expect(runs == len(rates) == 2, f"{runs} runs, {rates}")
            expect(abs(mean - sum(rates) / 2) < 1e-9, "the mean of both")
            # Of two values the standard error is half their distance; t(0.975; 1) of the tables is 12.7062.
            expect(abs(reach - 12.7062 * abs(rates[0] - rates[1]) / 2) < 1e-4 * max(1, reach), f"{reach} of {rates}")
            expect(ends[3 * i][:2] == [x, mean - reach] and ends[3 * i + 1][:2] == [x, mean + reach] and ends[3 * i + 2][1] is None,
                   "the stroke is the interval")
    expect("Of repetitions the mean, with its interval of 95 %" in page.run("element('rate-note').textContent"), "the note says so")


def check_legend(page):
    """The record with other cores than all others is a curve of its own, of one point, which has no place in the legend."""
    names = [name for name in page.run("JSON.parse(element('rate-chart').dataset.series)") if not name.endswith((", interval", ", model bound"))]
    listed = page.run("[...element('rate-chart-legend').querySelectorAll('button')].map(button => button.dataset.curve)")
    alone = [name for name in names if HOSTILE in name]
    expect(len(alone) == 1 and len(listed) == len(names) - 1, "a curve of one point is drawn")
    expect(set(listed) == set(names) - set(alone), "but is not in the legend")
    expect("of a single point" in page.run("element('rate-note').textContent"), "and the note says so")


def check_keyboard(page):
    page.run("(document.querySelector('#table tbody tr').focus(), 1)")
    page.run("(document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true})), 1)")
    expect(page.run("state.chosen !== null && element('point').textContent.includes(state.chosen.id)"),
           "Enter on a row chooses its point")
    expect(page.run("rowOf(state.chosen).nextElementSibling === element('details')"), "its details stand below its row")
    page.drawn("loads-chart")
    expect(page.run("JSON.parse(element('loads-chart').dataset.series).length") == 2, "its loads are drawn")
    expect(page.run("charts['loads-chart'].getOption().yAxis[0].data.every(name => data.resources.includes(name))"),
           "each load has the name of its resource")


def check_theme(page, folder):
    before = page.run("getComputedStyle(document.body).backgroundColor")
    page.driver.save_screenshot(str(folder / "report-light.png"))
    page.run("(element('theme').click(), 1)")
    expect(page.run("getComputedStyle(document.body).backgroundColor") != before, "the theme changes")
    page.driver.save_screenshot(str(folder / "report-dark.png"))


def check_print(page, total):
    """Paper has every chart, the table up to a thousand rows, and no dark; after it the page is as before."""
    rows = "document.querySelectorAll('#table tbody tr[data-id]').length"
    before = page.run(f"[{rows}, isDark(), element('shown').textContent]")
    page.run("(window.dispatchEvent(new Event('beforeprint')), 1)")
    expect(page.run(rows) == min(total, 1000), "the table for paper is whole, or its first thousand rows")
    expect(page.run("!isDark() && Object.keys(drawings).every(id => !outdated.has(id) || !element(id) || element(id).closest('[hidden]'))"),
           "every chart is drawn for paper")
    expect(page.run("Object.keys(charts).every(id => element(id).closest('[hidden]') || charts[id].getWidth() <= 700)"),
           "a chart is wider than paper")
    page.run("(window.dispatchEvent(new Event('afterprint')), 1)")
    expect(page.run(f"[{rows}, isDark(), element('shown').textContent]") == before, "printing leaves the page as it was")


def check_many(page):
    """A page of thousands of points shows some of them at a time, and the rest is there."""
    rows = "[...document.querySelectorAll('#table tbody tr[data-id]')].map(row => row.dataset.index)"
    expect(page.run("new Set(points.map(point => point.index)).size") == MANY, "every point is there, once")
    expect(page.run("charts['residual-chart'] === undefined"), "a chart out of view is not drawn yet")
    first = page.run(rows)
    expect(len(first) == 200, f"{len(first)} rows are shown at first")
    page.run("(element('after').click(), 1)")
    expect(not set(first) & set(page.run(rows)), "the next page has other points")
    expect("page 2 of 50" in page.run("element('shown').textContent"), "and says which it is")
    check_filter(page, MANY)
    expect("page 1 of 50" in page.run("element('shown').textContent"), "a filter begins at the first page")
    check_sort(page)
    check_charts(page)
    page.run("(element('option').value = 'tx_depth', element('option').dispatchEvent(new Event('change')), 1)")
    page.drawn("rate-chart")
    expect("More than 2000 points" in page.run("element('rate-note').textContent"), "markers that are left out are told")
    page.run("(element('option').value = 'size', element('option').dispatchEvent(new Event('change')), 1)")
    page.drawn("rate-chart")
    expect("The 40 longest of" in page.run("element('rate-note').textContent"), "curves that are left out are told")
    check_keyboard(page)
    check_print(page, MANY)


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
    make_many(folder / "few.jsonl", folder / "many.jsonl")
    for name in ("few", "many"):
        subprocess.run([binaries / "verbscope", "report", folder / f"{name}.jsonl", "-o", folder / f"{name}.html"], check=True)
    (folder / "many.jsonl").unlink()
    make_paper(binaries, folder)
    page = Page(folder)
    try:
        page.shortest(folder / "few.html", MOST_SECONDS)
        expect(page.run("state.shown.length") == total, "every point is there")
        check_filter(page, total)
        check_sort(page)
        check_charts(page)
        check_latency(page)
        check_repetitions(page)
        check_legend(page)
        check_keyboard(page)
        check_theme(page, folder)
        check_print(page, total)
        check_download(page, folder, total)
        expect(page.run("window.broken === undefined"), "HTML of a record ran")
        page.open(folder / "paper.html")
        check_paper(page, folder)
        page.open(folder / "files.html")
        check_files(page)
        page.shortest(folder / "many.html", MOST_SECONDS_MANY)
        check_many(page)
        expect(page.requests() == [], f"the page asked for {page.requests()}")
        messages = page.driver.get_log("browser")
        expect(messages == [], f"the console says {messages}")
    finally:
        page.driver.quit()
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
