#!/usr/bin/python3
"""Shows that the tests would notice: leaves one safeguard out at a time, and expects tests to fail.

Builds one program from the tests of several floors and from mutated copies of the sources that
table.py names. In a copy every mutation is an alternative that SHALE_MUTATION chooses as the program
starts, so the copies are compiled once, several at a time, and all other objects are the build's own.
Without SHALE_MUTATION the tests must pass; with each mutation the ones that the table names must fail,
and not by hanging. `--list` prints the table as markdown."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from functions import definitions_of
from table import MUTATIONS

HERE = pathlib.Path(__file__).resolve().parent

# Once in each unit of copies.
PREAMBLE = """#ifndef SHALE_MUTATED
#define SHALE_MUTATED
#include <cstdlib>
namespace {
[[maybe_unused]] bool mutated(int number) {
  static const int chosen = std::atoi(std::getenv("SHALE_MUTATION") ?: "0");
  return number == chosen;
}
}  // namespace
#endif
"""

# The test programs that become one; in some of them calls of the system are led through
# failing_calls.cpp.
PROGRAMS = ("interop_test", "failing_foreign_file_test", "array_test", "failing_calls_test",
            "format_test", "failing_mapping_test", "helper_team_test", "failing_threads_test",
            "callbacks_test", "composed_test", "fold_order_test", "order_test", "windows_test",
            "array_callbacks_test", "storage_test", "expr_test", "linalg_test")
# Suites of a name that another floor's tests have too.
LEFT_OUT = ("tests/array/processes_test.cpp", "tests/array/specification_test.cpp")

# As many sources of a floor are compiled as one where SHALE_UNITY is on (cmake/ShaleBuild.cmake). Those of
# one unit there fit together, and no others.
UNIT_SOURCES_MAX = 16

TIMEOUT_S = 60


def numbered():
    return list(enumerate(MUTATIONS, 1))


def places_in(path, text):
    """Where the mutations of a source are in its text, in order: (first, end, [(number, changed)]); and
    what is wrong with the table's entries, a line each."""
    by_place = {}
    wrong = []
    for number, each in numbered():
        for place in each.places if each.file == path else ():
            functions = definitions_of(text, place.function)
            if not functions:
                wrong.append(f"{each.name}: {path} defines no {place.function}")
                continue
            plain = place.original.replace("⟦", "").replace("⟧", "")
            found = [match.start() for match in re.finditer(re.escape(plain), text)
                     if any(first <= match.start() < end for first, end in functions)]
            if len(found) != 1:
                wrong.append(f"{each.name}: {place.function} of {path} holds its text {len(found)} "
                             f"times, not once: {' '.join(plain.split())}")
                continue
            first, end = found[0], found[0] + len(plain)
            if "⟦" in place.original:
                end = first + place.original.index("⟧") - 1
                first += place.original.index("⟦")
            by_place.setdefault((first, end), []).append((number, each.name, place.changed))
    places = []
    for (first, end), alternatives in sorted(by_place.items()):
        if places and first < places[-1][1]:
            wrong.append(f"{alternatives[0][1]}: in {path} it overlaps another mutation: {text[first:end]}")
        places.append((first, end, [(number, changed) for number, _, changed in alternatives]))
    return places, wrong


def mutate(root, path):
    """The source with all of its mutations as alternatives."""
    text = (root / path).read_text()
    places, wrong = places_in(path, text)
    if wrong:
        sys.exit("correct tests/mutations/table.py\n" + "\n".join(wrong))
    pieces = [PREAMBLE]
    done = 0
    for first, end, alternatives in places:
        pieces.append(text[done:first])
        original = text[first:end]
        is_statement = original.endswith((";", "}"))
        for number, changed in alternatives:
            if is_statement:
                pieces.append(f"if (mutated({number})) {{ {changed} }} else ")
            else:
                pieces.append(f"(mutated({number}) ? ({changed}) : ")
        pieces.append(f"{{ {original} }}" if is_statement
                      else f"({original})" + ")" * len(alternatives))
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def last_command(ninja, build, target):
    """The words of the command that links a target."""
    lines = run([ninja, "-C", build, "-t", "commands", target]).splitlines()
    words = shlex.split(lines[-1])
    if words[:2] == [":", "&&"]:
        words = words[2:words.index("&&", 2)]
    return words


def source_of(compiled):
    """The source of one of CMake's objects, as a path from the root."""
    source = re.sub(r"CMakeFiles/[^/]*\.dir/", "", compiled).replace("__/", "../")
    return os.path.normpath(source.removesuffix(".o"))


class Compilation:
    """How the build compiles a source, or several as one: the words without the names of the source and of its
    object."""

    def __init__(self, entry, root):
        words = shlex.split(entry["command"])
        at = words.index("-o")
        file = pathlib.Path(entry["file"])
        self.object = words[at + 1]
        self.folder = entry["directory"]
        self.is_unit = file.parent.name == "Unity"
        parts = re.findall(r'^#include "(.*)"', file.read_text(), re.M) if self.is_unit else [file]
        self.paths = [os.path.relpath(part, root) for part in parts]
        self.words = [word for word in words[:at] + words[at + 2:] if word not in ("-c", entry["file"])]

    def command(self, source, target):
        # Alternatives leave names unused and branches without a value; compiling takes most of the
        # time.
        words = [word for word in self.words if word != "-Werror"]
        return words + ["-w", "-O1", "-o", str(target), "-c", str(source)]


def compiled_alone(root):
    """The sources that SHALE_UNITY leaves out of its units."""
    alone = set()
    for rules in (root / "src").glob("*/CMakeLists.txt"):
        for names in re.findall(r"set_source_files_properties\(([^)]*?)\s+PROPERTIES "
                                r"SKIP_UNITY_BUILD_INCLUSION ON\)", rules.read_text()):
            alone |= {str((rules.parent / name).relative_to(root)) for name in names.split()}
    return alone


def units_of(root, build, paths):
    """The compilations of the sources `paths`, in lists of those that are compiled as one: the units of
    SHALE_UNITY, or what would be in one of them."""
    alone = compiled_alone(root)
    alike = {}  # sources of a floor that are compiled with the same words, in the order of the build
    for entry in json.loads((build / "compile_commands.json").read_text()):
        each = Compilation(entry, root)
        if each.paths[0].startswith("src/"):
            floor = each.paths[0].split("/")[1]
            by_itself = each.is_unit or each.paths[0] in alone
            key = (floor, *each.words, each.object if by_itself else "")
            alike.setdefault(key, []).append(each)
    units = []
    for sources in alike.values():
        for first in range(0, len(sources), UNIT_SOURCES_MAX):
            unit = [each for each in sources[first:first + UNIT_SOURCES_MAX]
                    if not paths.isdisjoint(each.paths)]
            if unit:
                units.append(unit)
    missing = paths - {path for unit in units for each in unit for path in each.paths}
    if missing:
        sys.exit(f"the build compiles no {', '.join(sorted(missing))}")
    return units


def write_if_other(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def build_program(root, build, ninja, jobs):
    """Compiles the mutated copies and links them with the build's other objects."""
    scratch = build / "tests/mutations"
    launcher = ["ccache"] if shutil.which("ccache") else []
    objects = {}
    compilations = []
    mutated = {each.file for each in MUTATIONS}
    units = units_of(root, build, mutated)
    # The largest begin first.
    for number, unit in enumerate(sorted(units, key=lambda each: -sum(len(part.paths) for part in each))):
        paths = [path for each in unit for path in each.paths]
        for path in mutated.intersection(paths):
            write_if_other(scratch / path, mutate(root, path))
        source = scratch / f"unit_{number}.cpp"
        write_if_other(source, "".join(f'#include "{(scratch if path in mutated else root) / path}"\n'
                                       for path in paths))
        target = source.with_suffix(".o")
        objects |= {each.object: str(target) for each in unit}
        compilations.append((launcher + unit[0].command(source, target), unit[0].folder))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda each: run(each[0], cwd=each[1]), compilations))

    compiled = {}  # objects by source: some are in several programs
    others = []
    for words in (last_command(ninja, build, program) for program in PROGRAMS):
        at = words.index("-o")
        del words[at:at + 2]
        for word in words:
            if word.endswith(".o"):
                compiled.setdefault(source_of(word), word)
            elif word not in others:
                others.append(word)
    program = scratch / "mutation_test"
    link = others[:1] + [word for source, word in compiled.items() if source not in LEFT_OUT]
    link += others[1:] + ["-o", str(program)]
    # One object stands for all sources of its unit.
    run(list(dict.fromkeys(objects.get(word, word) for word in link)), cwd=build)
    return program


def with_large_pages(environment, build):
    """For mutations that only machines with larger pages than this one would notice."""
    return dict(environment, LD_PRELOAD=str(build / "tests/liblarge_pages.so"),
                SHALE_LARGE_PAGE_BYTES="65536")


def test(program, number, tests, environment, timeout_s):
    """How a run of the tests ends: the status ("passed", "failed", …), and the first test to fail."""
    environment = dict(environment, SHALE_MUTATION=str(number))
    command = [program, f"--gtest_filter={tests}", "--gtest_fail_fast", "--gtest_brief=1"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=timeout_s, env=environment)
    except subprocess.TimeoutExpired as hung:
        return "hangs", "", (hung.stdout or b"").decode(errors="replace")
    failed = re.search(r"\[  FAILED  \] ([^\s,]+)", done.stdout)
    if done.returncode == 0:
        ran = re.search(r"\[==========\] (\d+) test", done.stdout)
        if ran and ran.group(1) == "0":
            return "no test", f"is called {tests}", ""
        return "passed", "", done.stdout
    how = "fails" if done.returncode > 0 or ": Failure" in done.stdout else ""
    if done.returncode < 0:
        how += f"{', then ' if how else ''}ends by signal {-done.returncode}"
    return how, failed.group(1) if failed else "", done.stdout


def cell(text):
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def list_table():
    print("| mutation | where | left out or changed | must fail |\n|---|---|---|---|")
    for each in MUTATIONS:
        tests = ", ".join(f"`{name}`" for name in each.tests.split(":"))
        print(f"| {each.name} | `{each.file.removeprefix('src/')}`, {each.function} | "
              f"{cell(each.what)} | {tests} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--ninja", default="ninja")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the table as markdown")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these mutations")
    parser.add_argument("--output", action="store_true", help="show what the tests print")
    arguments = parser.parse_args()
    if arguments.list:
        return list_table()
    if arguments.build is None:
        parser.error("--build is needed to run")
    chosen = [(number, each) for number, each in numbered()
              if (not arguments.only or each.name in arguments.only)
              and (not each.as_root or os.geteuid() == 0)]
    started = time.monotonic()
    program = build_program(arguments.source.resolve(), arguments.build.resolve(), arguments.ninja,
                            arguments.jobs)
    print(f"built in {time.monotonic() - started:.0f} s")

    # Fixed, so that what is found once is found always.
    environment = dict(os.environ, RC_PARAMS="seed=1 max_success=40")
    environment.pop("SHALE_LONG", None)
    # Tests that a mutation kills leave their files behind.
    in_memory = pathlib.Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(dir=in_memory if os.access(in_memory, os.W_OK) else None)
    environment["TMPDIR"] = folder.name
    environments = {False: environment,
                    True: with_large_pages(environment, arguments.build.resolve())}
    everything = {large: ":".join(sorted({name for _, each in chosen if each.large_pages == large
                                          for name in each.tests.split(":")}))
                  for large in environments}
    # Those that only wait for an alarm wait together, beside the others.
    waiting = sum(each.hangs for _, each in chosen)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, \
            concurrent.futures.ThreadPoolExecutor(max(waiting, 1)) as waiters:
        def judge(number, each):
            began = time.monotonic()
            return (*test(program, number, each.tests, environments[each.large_pages], TIMEOUT_S),
                    time.monotonic() - began)

        judged = [(each, (waiters if each.hangs else pool).submit(judge, number, each))
                  for number, each in chosen]
        sound = [pool.submit(test, program, 0, everything[large], environments[large],
                             5 * TIMEOUT_S) for large in environments if everything[large]]
        survivors = []
        for each, result in judged:
            how, by, output, seconds = result.result()
            print(f"{each.name}: {how} {by} ({seconds:.1f} s)", flush=True)
            if arguments.output:
                print(output)
            if how in ("passed", "hangs", "no test"):
                survivors.append(f"{each.name} {how}: {each.file}, {each.function}: {each.what}")
    for how, by, output in (each.result() for each in sound):
        print(f"without mutation: {how} {by}; {time.monotonic() - started:.0f} s in all")
        if how != "passed":
            sys.exit("the tests fail without any mutation\n" + output)
    if survivors:
        sys.exit("not caught:\n" + "\n".join(survivors))
    print(f"all {len(chosen)} mutations are caught")


if __name__ == "__main__":
    main()
