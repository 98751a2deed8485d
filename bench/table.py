"""The table of a benchmark's rows: on the terminal, and between the suite's markers in a document.

Usage: table.py SUITE ROWS [--update DOCUMENT]
"""

import argparse
import json
import os
import platform
import re


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def with_interval(ratio):
    median, low, high = ratio
    if low == high:
        return number(median)
    return f"{number(median)} ({number(low)}–{number(high)})"


def machine():
    with open("/proc/cpuinfo") as lines:
        model = next((l.split(":", 1)[1].strip() for l in lines if l.startswith("model name")), "?")
    return f"{len(os.sched_getaffinity(0))} × {model}, Linux {platform.release().split('-')[0]}"


def table(rows):
    peers = []
    for row in rows:
        peers += [name for name in row.get("peers", {}) if name not in peers]
    head = ["work", "seconds", "GB/s"] + [f"{p} / Shale" for p in peers]
    head += ["asked", "measured", "met", "peak MiB"]
    body = []
    for row in rows:
        reach = row.get("reach", {})
        bound = ""
        if reach:
            sign, value = ("≥", reach["at_least"]) if "at_least" in reach else ("≤", reach["at_most"])
            bound = f"{sign} {value:g} × {reach['against']}"
            if row["work"].endswith("seconds"):
                bound = f"≤ {reach['against']}"
        body.append(
            [row["work"], number(row["seconds"]), number(row["gb_per_s"]) if row["gb_per_s"] else "–"]
            + [with_interval(row["peers"][p]) if p in row.get("peers", {}) else "" for p in peers]
            + [bound, with_interval(reach["ratio"]) if reach else ""]
            + ["" if "met" not in row else "yes" if row["met"] else "**no**"]
            + [f"{row['peak_rss_bytes'] / 2**20:.0f}" if row["peak_rss_bytes"] else ""])
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in body])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("rows")
    parser.add_argument("--update")
    options = parser.parse_args()
    with open(options.rows) as lines:
        rows = [json.loads(line) for line in lines]
    text = f"`script/bench {options.suite}` on {machine()}.\n\n{table(rows)}"
    print(text)
    if options.update:
        begin, end = f"<!-- bench {options.suite} -->", f"<!-- end {options.suite} -->"
        with open(options.update) as file:
            document = file.read()
        if begin not in document or end not in document:
            raise SystemExit(f"{options.update} lacks the markers {begin} and {end}")
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        document = re.sub(pattern, lambda _: f"{begin}\n{text}\n{end}", document, flags=re.S)
        with open(options.update, "w") as file:
            file.write(document)


main()
