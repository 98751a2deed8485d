"""The table of a benchmark's rows: on the terminal, and between the suite's markers in a document.

Usage: table.py SUITE ROWS [--causes FILE] [--update DOCUMENT]

FILE is JSON: {SUITE: {PATTERN: CAUSE}}. A row that misses its target, or loses to a peer, shows the cause of the first
pattern that fits its work (as file names fit a shell's pattern), or says that none is known.
"""

import argparse
import fnmatch
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


def lost(row):
    return row.get("met") is False or any(median < 1 for median, _, _ in row.get("peers", {}).values())


def remark(row, causes):
    """What the last column says of a row: its note, and the cause of a loss. `causes` is None for suites whose
    document explains losses elsewhere."""
    parts = [row["note"]] if "note" in row else []
    if causes is not None and lost(row):
        parts.append(next((cause for pattern, cause in causes.items() if fnmatch.fnmatchcase(row["work"], pattern)),
                          "cause not known"))
    return "; ".join(parts).replace("|", "\\|").replace("\n", " ")


def of_peer(row, peer):
    """The seconds of a peer beside Shale's, and how it packs the same values."""
    if peer not in row.get("peers", {}):
        return ""
    packing = row.get("packing", {}).get(peer)
    return with_interval(row["peers"][peer]) + (f", packs {number(packing)}" if packing else "")


def machine():
    with open("/proc/cpuinfo") as lines:
        model = next((l.split(":", 1)[1].strip() for l in lines if l.startswith("model name")), "?")
    return f"{len(os.sched_getaffinity(0))} × {model}, Linux {platform.release().split('-')[0]}"


def table(rows, causes=None):
    peers = []
    for row in rows:
        peers += [name for name in row.get("peers", {}) if name not in peers]
    head = ["work", "seconds", "GB/s"] + [f"{p} / Shale" for p in peers]
    packs = any("packing" in row for row in rows)
    remarks = [remark(row, causes) for row in rows]
    head += ["packs"] * packs + ["asked", "measured", "met", "peak MiB"] + ["remarks"] * any(remarks)
    body = []
    for row, said in zip(rows, remarks):
        reach = row.get("reach", {})
        bound = ""
        if reach:
            sign, value = ("≥", reach["at_least"]) if "at_least" in reach else ("≤", reach["at_most"])
            bound = f"{sign} {value:g} × {reach['against']}"
            if row["work"].endswith("seconds"):
                bound = f"≤ {reach['against']}"
        body.append(
            [row["work"], number(row["seconds"]) if row["seconds"] else "–",
             number(row["gb_per_s"]) if row["gb_per_s"] else "–"]
            + [of_peer(row, p) for p in peers]
            + [number(row["packing"]["shale"]) if "packing" in row else ""] * packs
            + [bound, with_interval(reach["ratio"]) if reach else ""]
            + ["" if "met" not in row else "yes" if row["met"] else "**no**"]
            + [f"{row['peak_rss_bytes'] / 2**20:.0f}" if row["peak_rss_bytes"] else ""]
            + [said] * any(remarks))
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "".join("|---" if name == "remarks" else "|---:" for name in head[1:]) + "|"]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in body])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("rows")
    parser.add_argument("--causes")
    parser.add_argument("--update")
    options = parser.parse_args()
    with open(options.rows) as lines:
        rows = [json.loads(line) for line in lines]
    causes = None
    if options.causes:
        with open(options.causes) as file:
            causes = json.load(file).get(options.suite)
    text = f"`script/bench {options.suite}` on {machine()}.\n\n{table(rows, causes)}"
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


if __name__ == "__main__":
    main()
