"""What a public header costs whoever includes it."""

import concurrent.futures
import os
import re
import subprocess

from floors import UMBRELLA

# Only in sources and private headers, neither named by a public header nor dragged in by what it
# names.
FORBIDDEN = ("tbb oneapi boost hdf5 fmt flatbuffers zstd.h zdict.h lz4.h xxhash.h png.h zlib.h cblas.h "
             "sleef.h hwy filesystem functional iostream").split()

# Preprocessed lines with code (g++ -std=c++20 -E).
LINES_MAX = 50_900
LINES_MAX_UMBRELLA = 56_000


def forbidden(path):
    """What of FORBIDDEN the path of an #include is, if any: as its last part, or as a folder."""
    parts = path.split("/")
    for name in FORBIDDEN:
        if parts[-1] == name or name in parts[:-1]:
            return name
    return None


def check_header(house, name):
    findings = []
    for number, target, _ in house.includes(name):
        if forbidden(target):
            findings.append((f"{name}:{number}", f"includes {target}, of no public header"))
    unit = f'#include "{name.removeprefix("include/")}"\n'

    def compiler(text, *arguments):
        return subprocess.run([house.compiler, "-std=c++20", *arguments, "-"], input=text,
                              capture_output=True, text=True)

    alone = compiler(unit, "-x", "c++", f"-I{house.root / 'include'}", "-E")
    text = alone.stdout
    if alone.returncode == 0:
        alone = compiler(text, "-x", "c++-cpp-output", "-fsyntax-only")
    if alone.returncode != 0:
        errors = [line for line in alone.stderr.splitlines() if "error" in line]
        return [*findings, (name, "does not compile alone: " + (errors or [alone.stderr])[0])]

    limit = LINES_MAX_UMBRELLA if name == UMBRELLA else LINES_MAX
    count = sum(1 for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if count > limit:
        findings.append((name, f"preprocesses to {count} lines of code, at most {limit} allowed"))
    dragged = {}
    for path in re.findall(r'^# \d+ "([^"<]+)"', text, re.M):
        if forbidden(path):
            dragged.setdefault(forbidden(path), path)
    for what, path in sorted(dragged.items()):
        findings.append((name, f"drags in {what}: {path}"))
    return findings


def check_headers(house):
    """Every public header compiles alone, stays in its budget, and drags in no dependency."""
    # The compilers work, these threads wait.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for findings in threads.map(lambda name: check_header(house, name), house.under("include")):
            for where, what in findings:
                house.add(where, what)
