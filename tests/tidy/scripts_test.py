#!/usr/bin/python3
"""The scripts that others rely on: whether script/environment lets anything of the caller through, what
script/verdict says of a run, what script/rename moves, where mutations find a function, which harnesses
script/check fuzzes, how test programs are linked, and whether scripts work from any folder."""

import argparse
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import unittest

# Checking the tree leaves nothing in it.
sys.dont_write_bytecode = True

from tidy_test import Copy, Scratch


class Environment(Scratch):
    """Commands that script/environment runs, for a caller whose own environment is hostile."""

    build = None
    HOSTILE = {
        "OPENBLAS_CORETYPE": "Bulldozer", "OPENBLAS_NUM_THREADS": "7", "OPENBLAS_VERBOSE": "5",
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TBB_MALLOC_USE_HUGE_PAGES": "1",
        "MALLOC_PERTURB_": "85", "MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.check=3",
        "LD_PRELOAD": "/nowhere/hostile.so", "LD_BIND_NOW": "1", "PYTHONPATH": "{folder}",
        "PYTHONHASHSEED": "random", "PYTHONOPTIMIZE": "2", "SHALE_ISA": "abacus", "SHALE_LONG": "1",
        "SHALE_MUTATION": "3", "GTEST_FILTER": "-*", "GTEST_SHUFFLE": "1", "RC_PARAMS": "max_success=0",
        "ASAN_OPTIONS": "detect_leaks=0", "CTEST_PARALLEL_LEVEL": "64", "CMAKE_GENERATOR": "Nothing",
        "CC": "false", "CXX": "false", "CXXFLAGS": "-DHOSTILE", "MAKEFLAGS": "-n", "NINJA_STATUS": "hostile",
        "LC_ALL": "C", "LANG": "tr_TR.UTF-8", "LANGUAGE": "de", "TZ": "Asia/Kathmandu",
        "GIT_DIR": "{folder}", "IFS": "/", "CDPATH": "/", "POSIXLY_CORRECT": "1", "COLUMNS": "20",
    }

    @classmethod
    def populate(cls):
        # What an oracle would import by mistake.
        (cls.root / "numpy.py").write_text("raise ImportError('the caller's numpy')\n")

    def run_in_it(self, *command, hostile):
        def become_hostile():
            os.umask(0o077)
            for limit, value in ((resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_STACK, 1 << 20),
                                 (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 1 << 20)):
                resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))
            for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)

        environment = dict(os.environ)
        if hostile:
            environment |= {name: value.format(folder=self.root) for name, value in self.HOSTILE.items()}
        done = subprocess.run([str(self.source / "script/environment"), *map(str, command)],
                              env=environment, preexec_fn=become_hostile if hostile else None,
                              restore_signals=not hostile, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def expect_the_same(self, *command):
        told = self.run_in_it(*command, hostile=False)
        self.assertNotEqual(told, "")
        self.assertEqual(self.run_in_it(*command, hostile=True), told)
        return told

    def test_variables_are_stated(self):
        names = {line.split("=")[0] for line in self.expect_the_same("env").splitlines()}
        self.assertFalse(names & self.HOSTILE.keys() - {"LANG"}, names)
        self.assertEqual(self.expect_the_same("printenv", "LANG"), "C.UTF-8\n")

    def test_mask_limits_and_signals_are_stated(self):
        self.assertEqual(self.expect_the_same("sh", "-c", "umask"), "0022\n")
        told = self.expect_the_same("sh", "-c", "ulimit -a; grep -E 'Sig(Ign|Blk)' /proc/self/status")
        self.assertRegex(told, r"(?m)^nofiles.* 1024$|^open files.* 1024$")
        self.assertRegex(told, r"(?m)^SigIgn:\s+0+$")

    def test_results_are_the_same(self):
        self.expect_the_same(self.build / "tests/ops/report_kernels")
        self.expect_the_same("/usr/bin/python3", "-c", "import numpy, time; print(numpy.pi, time.tzname)")
        told = self.expect_the_same("sh", "-c", f"'{self.build}/tests/ops/kernels_test' --gtest_brief=1 "
                                    "--gtest_filter=BlasKernels.*:MatmulRules.* | sed 's/([0-9]* ms.*//'")
        self.assertIn("[  PASSED  ]", told)

    def test_commands_keep_what_they_need(self):
        self.assertEqual(self.run_in_it("printenv", "PATH", hostile=False), os.environ["PATH"] + "\n")
        done = subprocess.run([str(self.source / "script/environment"), "sh", "-c", "exit 7"])
        self.assertEqual(done.returncode, 7)


class Verdict(Scratch):
    """What script/verdict says of stages whose output is made up."""

    @classmethod
    def populate(cls):
        pass

    def setUp(self):
        self.stages = []

    def stage(self, name, result="passed", log="", tests=()):
        """`tests` are (name, output) of those that failed."""
        output = self.root / str(len(self.stages))
        pathlib.Path(f"{output}.log").write_text(log)
        pathlib.Path(f"{output}.xml").unlink(missing_ok=True)
        if tests:
            cases = "".join(f'<testcase name="{test}" status="fail"><failure message="Failed"/>'
                            f"<system-out>{text}</system-out></testcase>" for test, text in tests)
            pathlib.Path(f"{output}.xml").write_text(
                f'<testsuite><testcase name="Sound.One" status="run"/>{cases}</testsuite>')
        self.stages.append(f"{name}\t{len(self.stages) + 10}\t{result}\t{output}")

    def verdict(self, status):
        (self.root / "list").write_text("\n".join(self.stages) + "\n")
        done = subprocess.run([str(self.source / "script/verdict"), str(self.root)],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["", "== verdict"])
        self.assertLessEqual(len(lines) - 2, 60)
        return lines[2:]

    def test_stages_with_seconds_and_results(self):
        self.stage("build")
        self.stage("tests of the build")
        self.assertEqual(self.verdict(0), ["build                  10 s  passed",
                                           "tests of the build     11 s  passed",
                                           "everything passed, 21 s in all"])

    def test_one_run_names_all_failures(self):
        self.stage("checks", "FAILED", "-- format\n/a/dims.cpp:1:2: error: code should be clang-formatted\n"
                                       "-- the house\ntests/mutations/table.py: a-mutation: src/a.cpp holds "
                                       "its text 0 times\n-- both compilers\nc++: 2 sources that changed\n"
                                       "error: failed: format\nerror: failed: the house\n")
        self.stage("release tests", "FAILED", "many lines\n" * 100, [
            ("Dims.Planted", "[ RUN      ] Dims.Planted\n/a/dims_test.cpp:7: Failure\nExpected equality\n"
                             "  1\n  2\n" + "more\n" * 40)])
        self.stage("clang build", "FAILED", "[1/9] Building\n/a/dims.cpp:3:5: error: no such name\n"
                                            "note: it is not\n" + "[2/9] Building\n" * 50)
        self.stage("clang tests", "not run", "")
        lines = self.verdict(1)
        self.assertIn("clang tests       13 s  not run", lines)
        text = "\n".join(lines)
        self.assertIn("FAILED: Dims.Planted (release tests): Failed\n"
                      "  /a/dims_test.cpp:7: Failure\n  Expected equality\n    1", text)
        self.assertIn("FAILED: clang build\n  /a/dims.cpp:3:5: error: no such name\n  note: it is not\n"
                      "4 failures, 46 s in all", text)
        self.assertIn("FAILED: checks, format\n  /a/dims.cpp:1:2: error: code should be", text)
        self.assertIn("FAILED: checks, the house\n  tests/mutations/table.py: a-mutation: src/a.cpp holds", text)
        self.assertNotIn("both compilers", text)
        self.assertEqual(lines[-1], "4 failures, 46 s in all")

    def test_many_failures_are_counted(self):
        self.stage("release tests", "FAILED", "", [
            (f"Dims.Test{number}", "dims_test.cpp:7: Failure\nwhy") for number in range(200)])
        lines = self.verdict(1)
        self.assertEqual(len(lines), 60)
        self.assertIn("FAILED: Dims.Test56 (release tests): Failed", lines)
        self.assertEqual(lines[-2:], ["FAILED: and 143 more", "200 failures, 10 s in all"])

    def test_skips_that_are_not_listed(self):
        self.stage("release tests", "FAILED",
                   "a line\n  [skipped] Dims.Old: skipped: by a test of skips [not in skips.txt]\n"
                   "Dims.Skip: skipped: no device here [not in tests/skips.txt]\n")
        self.assertEqual(self.verdict(1)[1:-1], [
            "FAILED: skipped, and not in the list of skips (release tests)",
            "  Dims.Skip: skipped: no device here [not in tests/skips.txt]"])

    def test_noise_before_the_failure_of_a_program(self):
        self.stage("release tests", "FAILED", "", [
            ("Command", "ERROR: ld.so: object cannot be preloaded: ignored.\n" * 30 +
             "FAIL: test_it (__main__.Command)\nwhy\n")])
        self.assertIn("  FAIL: test_it (__main__.Command)", self.verdict(1))


class Rename(Copy):
    """What script/rename leaves."""

    @classmethod
    def populate(cls):
        super().populate()
        cls.git("init", "-q")
        cls.git("config", "user.name", "a test")
        cls.git("config", "user.email", "test@localhost")
        cls.git("add", "-A")
        cls.git("commit", "-q", "-m", "Everything")

    @classmethod
    def git(cls, *arguments):
        subprocess.run(["git", "-C", str(cls.root), *arguments], check=True, stdout=subprocess.DEVNULL)

    def tearDown(self):
        self.git("reset", "-q", "--hard")
        self.git("clean", "-q", "-d", "-f")

    def rename(self, *arguments):
        done = subprocess.run([str(self.root / "script/rename"), *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_all_that_names_a_unit_moves_with_it(self):
        tool = self.root / "tests/tidy/tidy.py"
        checks = "floors,tested,references,documents,named,mutations"
        before = self.tidy(checks, tool)
        for old, new, test in (
                ("src/format/transaction/writer_lock_wait", "src/format/transaction/awaited_lock", None),
                ("src/storage/files/awaited_file", "src/storage/files/expected_file",
                 "tests/storage/expected_file_test.cpp"),
                ("src/ops/leaves/indices", "src/ops/graph/indices", None),
                ("src/ops/kernels/strided/scan_strided", "src/ops/kernels/strided/strided_scan", None),
                ("src/storage/mapped/mapped_extents", "src/storage/shared/mapped_extents",
                 "tests/storage/mapped_extents_test.cpp"),
                ("include/shale/slice", "include/shale/cut", None),
                ("tools/terminal/units", "tools/terminal/byte_units", None)):
            status, text = self.rename(old, new)
            self.assertEqual(status, 0, text)
            self.assertFalse((self.root / f"{old}.hpp").exists())
            self.assertFalse((self.root / "src/core/slice.cpp").exists() and "slice" in old)
            self.assertTrue((self.root / f"{new}.hpp").exists())
            if test:
                self.assertTrue((self.root / test).exists(), text)
        status, text = self.rename("src/ops/functions/expressions/ops", "src/ops/evaluation/ops")
        self.assertEqual(status, 0, text)
        self.assertTrue((self.root / "src/ops/evaluation/ops.cpp").exists())
        self.git("add", "-A")
        self.assertEqual(self.tidy(checks, tool), before)
        sources = re.findall(r"^ {4}([\w/]+\.cpp)\)?$",
                             (self.root / "src/storage/CMakeLists.txt").read_text(), re.M)
        self.assertIn("files/expected_file.cpp", sources)
        self.assertEqual(sources, sorted(sources))

    def test_what_cannot_be_renamed_changes_nothing(self):
        for arguments, reason in (
                (("src/core/nothing", "src/core/something"), "there is no src/core/nothing.hpp"),
                (("src/core/dims", "src/core/extents"), "rename include/shale/dims"),
                (("src/core/enumerator", "src/core/held"), "src/core/held.hpp exists"),
                (("src/core/dims.cpp", "src/core/extents.cpp"), "is no unit"),
                (("src/core/dims", "tools/terminal/dims"), "cannot leave src")):
            status, text = self.rename(*arguments)
            self.assertEqual(status, 1, text)
            self.assertIn(reason, text)
        changed = subprocess.run(["git", "-C", str(self.root), "status", "--porcelain"],
                                 capture_output=True, text=True).stdout
        self.assertEqual(changed, "")


class Functions(unittest.TestCase):
    """Where tests/mutations/functions.py finds a definition."""

    SOURCE = """
    void early();  // early() {
    int caller() { if (early()) { return early(); } return "early() {"[0]; }
    void early(const map<int, char> in = {1, '{'}) const noexcept(false) { { first; } }
    template <class T> auto box<T>::early(T each) -> std::vector<T>& { second; }
    box::box(int from) : part_(early(from)), other_{from, R"(})"}, base<int>(1'000) { third; }
    box::~box() { fourth; }
    const auto local = [&](int each) mutable { fifth; };
    using box::early;
    """

    def test_definitions_are_told_from_calls(self):
        sys.path.insert(0, str(Scratch.source / "tests/mutations"))
        from functions import definitions_of
        for name, held in (("early", ("first;", "second;")), ("box", ("third;",)), ("~box", ("fourth;",)),
                           ("local", ("fifth;",)), ("absent", ()), ("ear", ())):
            spans = [self.SOURCE[first:end] for first, end in definitions_of(self.SOURCE, name)]
            self.assertEqual(len(spans), len(held), (name, spans))
            for span, text in zip(spans, held):
                self.assertTrue(span.startswith(name) and span.endswith("}"), span)
                self.assertIn(text, span)
                self.assertEqual(span.count(";"), 1, span)


class FixedFuzzing(unittest.TestCase):
    """What script/check knows of the harnesses in tests/fuzz."""

    def test_every_harness_has_a_number_of_inputs(self):
        rules = (Scratch.source / "tests/fuzz/CMakeLists.txt").read_text()
        script = (Scratch.source / "script/check").read_text()
        harnesses = re.findall(r"^ *shale_add_fuzzer\((\w+) ", rules, re.M)
        self.assertIn("npy", harnesses)
        numbers = re.search(r"declare -A runs=\(([^)]*)\)", script)[1]
        self.assertEqual(sorted(re.findall(r"\[(\w+)\]=\d+", numbers)), sorted(harnesses))


class Programs(unittest.TestCase):
    """How the build links test programs of which a part is optimized (cmake/ShaleBuild.cmake)."""

    def test_optimized_objects_come_first(self):
        rules = Environment.build / "build.ninja"
        if not rules.exists():
            return  # another generator made the build
        programs = set()
        for program, inputs in re.findall(r"^build (tests/\S+): CXX_EXECUTABLE_LINKER\S* (.*?)(?: \||$)",
                                          rules.read_text(), re.M):
            optimized = ["_optimized.dir/" in word for word in inputs.split() if word.startswith("tests/")]
            if any(optimized):
                programs.add(program)
                self.assertEqual(optimized, sorted(optimized, reverse=True), program)
        self.assertIn("tests/format/format_test", programs)


class Elsewhere(Scratch):
    """Scripts that are called from a folder outside the repository."""

    @classmethod
    def populate(cls):
        cls.root = cls.root.resolve()
        stub = '#!/bin/sh\necho "$0 in $PWD" >>"$SHALE_CALLS"\nexit 9\n'
        for program in ("tools/shale", "examples/hold", "examples/attach"):
            path = cls.root / "programs" / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(stub)
            path.chmod(0o755)
        # What df says to the demo, whatever is free on this machine.
        for free_mib in (516, 517):
            path = cls.root / str(free_mib) / "df"
            path.parent.mkdir()
            path.write_text(f"#!/bin/sh\necho Avail\necho {free_mib}M\n")
            path.chmod(0o755)

    def path_with(self, free_mib):
        return f"{self.root}/{free_mib}:{os.environ['PATH']}"

    def call(self, script, *arguments, status, **variables):
        command = os.path.relpath(self.source / "script" / script, self.root)
        done = subprocess.run([command, *map(str, arguments)], cwd=self.root, text=True,
                              env=dict(os.environ) | variables, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_help_is_shown(self):
        for script in ("bench", "check", "coverage", "demo", "test"):
            self.assertIn(f"Usage: script/{script}", self.call(script, "--help", status=0))

    def test_a_quick_benchmark_updates_no_document(self):
        said = self.call("bench", "container", "--quick", "--update", status=2)
        self.assertIn("--quick measures nothing", said)

    def test_the_demo_uses_the_folders_that_were_named(self):
        model = re.search(r"^model=(\S+)$", (self.source / "script/demo").read_text(), re.M)[1]
        if not os.access(model, os.R_OK):
            self.skipTest(f"{model} is missing; script/setup installs it")
        calls = self.root / "calls"
        for build, folder in (("programs", "here"), (self.root / "programs", self.root / "there")):
            said = self.call("demo", "--size", "1MiB", "--build", build, "--dir", folder, status=9,
                             SHALE_CALLS=str(calls), PATH=self.path_with(517))
            self.assertIn("demo: FAILED", said)
            self.assertRegex(calls.read_text(), "^" + re.escape(f"{self.root}/programs/tools/shale in ")
                             + re.escape(f"{self.root / folder}/run-") + r"\w+\n$")
            self.assertEqual(list((self.root / folder).iterdir()), [])
            calls.unlink()

    def test_the_demo_takes_no_other_programs(self):
        for build in ("nowhere", self.root / "nowhere"):
            said = self.call("demo", "--size", "1MiB", "--build", build, "--dir", "here", status=1,
                             PATH=self.path_with(517))
            self.assertEqual(said, f"demo: {self.root}/nowhere/tools/shale is missing\n")

    def test_the_demo_begins_only_with_enough_room(self):
        said = self.call("demo", "--size", "1MiB", "--build", "programs", "--dir", "here", status=1,
                         PATH=self.path_with(516))
        self.assertEqual(said, f"demo: needs 517 MiB of free disk in {self.root}/here, found 516; "
                               "try a smaller --size\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    arguments, rest = parser.parse_known_args()
    Scratch.source = arguments.root.resolve()
    Scratch.compiler = arguments.compiler
    Environment.build = arguments.build.resolve()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
