"""What documents, code and tests say of each other."""

import os
import re

from house import CODE


def check_documents(house):
    """Every document can be reached from another one, links lead somewhere, and blocks say what
    they are in, so that those in C++ are compiled (snippets.py)."""
    documents = [f for f in house.files if f.endswith(".md")]
    links = {}
    for name in documents:
        fenced = hidden = False
        for number, line in house.lines(name):
            if line.lstrip().startswith("```"):
                fenced = not fenced
                if fenced and line.strip() == "```":
                    house.add(f"{name}:{number}", "a block without a language: cpp, sh, text, …")
            hidden = (hidden or line.startswith("<!--")) and not line.endswith("-->")
            for target in () if fenced or hidden else re.findall(
                    r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                path = os.path.normpath(os.path.join(os.path.dirname(name), target))
                links.setdefault(path, set()).add(name)
                if not (house.root / path).exists():
                    house.add(f"{name}:{number}", f"links to {target}, which is not there")
    for name in documents:
        # Decisions are reached by their folder.
        folder = os.path.dirname(name)
        reached = links.get(name, set()) | (
            links.get(folder, set()) if folder == "docs/decisions" else set())
        if folder.startswith("docs") and not reached - {name}:
            house.add(name, "no other document links to it")


def check_readme(house):
    """The README's C++ stands, line for line, in an example that is compiled."""
    examples = [house.text(f) for f in house.under("examples", suffixes=(".cpp",))]
    for block in re.findall(r"```cpp\n(.*?)```", house.text("README.md"), re.S):
        if not any(block in text for text in examples):
            house.add("README.md", "its C++ is in no example: " + block.strip().splitlines()[0])


def check_ancestors(house):
    """docs/from-torch.md answers every name of the ancestors, in the first column of a table. Names behind
    the heading "Missing" are answered by "not yet", and no others are."""
    page, names = "docs/from-torch.md", "tests/ancestors/names.txt"
    answers = {}
    for cell, answer in re.findall(r"^\|(.*?)(?<!\\)\|(.*)\|$", house.text(page), re.M):
        for word in re.findall(r"\w+", cell):
            answers.setdefault(word, []).append("not yet" in answer.lower())
    heading = None
    for number, line in house.lines(names):
        if line.startswith("#"):
            heading = line
        for name in () if line.startswith("#") else line.split():
            if name not in answers:
                house.add(f"{names}:{number}", f"{page} has no row for {name}")
            elif all(answers[name]) != (heading == "# Missing"):
                house.add(f"{names}:{number}", f"{page} says 'not yet' for {name}, or {names} does")


def check_invariants(house):
    """Numbered invariants of a source (`commit.3  …` in an opening comment) are cited by a test,
    and nobody cites what no source states."""
    stated = {}
    for name in house.under("include", "src", suffixes=CODE):
        for invariant in re.findall(r"^//\s+([a-z_]+\.\d+)\s\s", house.text(name), re.M):
            if invariant in stated:
                house.add(name, f"states invariant {invariant}, as {stated[invariant]} does")
            stated[invariant] = name
    tests = [f for f in house.under("tests", suffixes=(*CODE, ".py"))
             if not f.startswith("tests/tidy/")]
    cited = set()
    for name in tests:
        cited.update(re.findall(r"\b[a-z_]+\.\d+\b", house.text(name)))
    for invariant, name in stated.items():
        if invariant not in cited:
            house.add(name, f"no test cites invariant {invariant}")

    modules = "|".join({re.escape(i.split(".")[0]) for i in stated})
    # In a comment, and no file name, member or decimal number.
    citation = re.compile(rf"(?<![\w./*-])((?:{modules})\.\d+)(?![\w.])") if modules else None
    for name in [*house.under("include", "src", "tests", suffixes=CODE), *house.build_files]:
        for number, line in house.lines(name):
            comment = re.search(r"(//|#).*", line)
            for invariant in citation.findall(comment.group(0)) if comment and citation else ():
                if invariant not in stated:
                    house.add(f"{name}:{number}", f"cites invariant {invariant}, which none states")


def check_named_tests(house):
    """A test that a document names, as `Suite.Name` or as `…Name` of the suite before, exists."""
    suites = {suite for suite, _ in house.tests}
    for name in house.under("docs", suffixes=(".md",)):
        suite = None
        for number, line in house.lines(name):
            for named in re.finditer(r"`(?:([A-Z]\w+)\.|…)([A-Z]\w+)`", line):
                suite = named.group(1) or suite
                if suite in suites and (suite, named.group(2)) not in house.tests:
                    house.add(f"{name}:{number}",
                              f"names test {suite}.{named.group(2)}, which is not there")
