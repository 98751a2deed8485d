#!/usr/bin/python3
"""Plants one violation of each kind in a copy of the tree, and expects tidy.py to name the file and
the reason; the unchanged copy passes. Likewise for skipped.py. Prints what was found."""

import argparse
import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

# Checking the tree leaves nothing in it.
sys.dont_write_bytecode = True

from house import House

HERE = pathlib.Path(__file__).resolve().parent


class Scratch(unittest.TestCase):
    source = None
    compiler = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="shale-tidy-")
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        cls.populate()

    @contextlib.contextmanager
    def planted(self, name, text="", old=None):
        """The file `name` made, or changed: `text` in place of `old`, or appended."""
        path = self.root / name
        before = path.read_text() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        if old is not None:
            self.assertEqual(before.count(old), 1, f"{old!r} in {name}")
            path.write_text(before.replace(old, text))
        else:
            path.write_text((before or "") + text)
        try:
            yield
        finally:
            if before is None:
                path.unlink()
            else:
                path.write_text(before)

    def tidy(self, checks, tool=HERE / "tidy.py"):
        run = subprocess.run([sys.executable, str(tool), "--root", str(self.root),
                              "--compiler", self.compiler, "--only", checks],
                             capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        return run.returncode, run.stdout.splitlines()

    def expect(self, check, *findings):
        """The check fails with exactly these findings: (file, part of the reason)."""
        status, lines = self.tidy(check)
        for line in lines:
            print(f"  [{check}] {line}")
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), len(findings), lines)
        for line, (file, reason) in zip(sorted(lines), sorted(findings)):
            self.assertTrue(line.startswith(f"{file}:"), line)
            self.assertIn(reason, line)


class Copy(Scratch):
    """Has a copy of the tree, with one file of each fuzz corpus."""

    @classmethod
    def populate(cls):
        seen = set()
        for name in House(cls.source, cls.compiler).files:
            folder = str(pathlib.PurePosixPath(name).parent)
            if "/corpus/" in name and folder in seen:
                continue
            seen.add(folder)
            (cls.root / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(cls.source / name, cls.root / name)


class Tree(Copy):
    """What tidy.py finds in it."""

    def test_unchanged_tree_passes(self):
        status, lines = self.tidy(
            "floors,tested,references,documented,documents,readme,invariants,skips")
        self.assertEqual((status, lines), (0, []))

    # ---- floors ------------------------------------------------------------------------------

    def test_include_of_a_higher_floor(self):
        with self.planted("src/core/dims.cpp", '#include "ops/graph.hpp"\n'):
            self.expect("floors", ("src/core/dims.cpp",
                                   "core may not include ops/graph.hpp of ops"))
        with self.planted("src/storage/pages.hpp", "#include <shale/tensor.hpp>\n"):
            self.expect("floors", ("src/storage/pages.hpp",
                                   "storage may not include shale/tensor.hpp of tensor"))
        with self.planted("src/format/page.cpp", '#include "../ops/graph.hpp"\n'):
            self.expect("floors", ("src/format/page.cpp", "format may not include"))

    def test_include_of_a_private_header(self):
        with self.planted("tools/units.cpp", '#include "../src/core/../ops/graph.hpp"\n'):
            self.expect("floors", ("tools/units.cpp", "tools may include public headers only"))
        with self.planted("include/shale/storage.hpp", '#include "storage/pages.hpp"\n'):
            self.expect("floors", ("include/shale/storage.hpp",
                                   "a public header may not include storage/pages.hpp"))

    def test_header_on_no_floor(self):
        with self.planted("include/shale/deep/planted.hpp"):
            self.expect("floors", ("include/shale/deep/planted.hpp", "belongs to no floor"))

    # ---- tested ------------------------------------------------------------------------------

    def test_untested_source(self):
        with self.planted("src/core/planted.cpp"):
            self.expect("tested", ("src/core/planted.cpp", "untested: no file of tests includes"))
        with self.planted("include/shale/planted.hpp"):
            self.expect("tested", ("include/shale/planted.hpp", "untested: no file of tests"))

    def test_excuse_that_is_none(self):
        with self.planted("tests/core/dims_test.cpp", '#include "parallel/operands.hpp"\n'):
            self.expect("tested", ("tests/tidy/tested.py",
                                   "src/parallel/operands, which has a test"))

    def test_skip_of_no_test(self):
        with self.planted("tests/skips.txt", "Planted.Test  no reason holds\n"):
            self.expect("skips", ("tests/skips.txt", "there is no test Planted.Test"))

    # ---- references --------------------------------------------------------------------------

    def test_dead_file(self):
        dead = (
            ("src/core/planted.cpp", "dead file: is in no build file"),
            ("src/ops/kernels/planted.cpp", "dead file: is in no build file"),
            ("tests/core/planted_test.cpp", "dead file: is in no build file"),
            ("tests/slice_test.cpp", "dead file: is in no build file"),
            ("tools/planted.cpp", "dead file: is in no build file"),
            ("examples/planted.cpp", "dead file: is in no build file"),
            ("src/core/planted.hpp", "dead file: nobody includes it"),
            ("tests/support/planted.hpp", "dead file: nobody includes it"),
            ("include/shale/planted.hpp", "dead file: nobody includes it"),
            ("src/format/planted.fbs", "dead file: nobody mentions it"),
            ("tests/fuzz/corpus/planted/seed", "dead file: corpus of no harness"),
            ("tests/planted/CMakeLists.txt", "dead file: no build file adds its folder"),
            ("cmake/Planted.cmake", "dead file: no build file includes it"),
            ("tests/core/planted.py", "dead file: nobody mentions it"),
            ("script/planted", "dead file: nobody mentions it"),
            ("docs/planted.txt", "dead file: nobody mentions it"))
        with contextlib.ExitStack() as plants:
            for name, _ in dead:
                plants.enter_context(self.planted(name))
            self.expect("references", *dead)

    def test_source_in_a_comment_of_a_build_file(self):
        with self.planted("src/core/CMakeLists.txt", "# overlap.cpp\n", "    overlap.cpp\n"):
            self.expect("references", ("src/core/overlap.cpp", "dead file: is in no build file"))

    # ---- documented --------------------------------------------------------------------------

    def test_undocumented_name(self):
        undocumented = (
            ("class planted {};", "class planted"),
            ("struct planted {};", "class planted"),
            ("enum class planted : int {};", "enum planted"),
            ("using planted = int;", "type alias planted"),
            ("inline constexpr int planted = 3;", "constant planted"),
            ("template <class T>\nrequires(sizeof(T) > 1) T planted(T value) {\n"
             "  return value;\n}", "function planted"),
            ("/// All of it.\nint documented();\n\nint planted(const dims& at = {});",
             "function planted"),
            ("/// A class.\nclass documented {\n public:\n  int planted() const;\n};",
             "function planted"),
            ("/// A class.\nclass documented {\n  int hidden();\n\n public:\n"
             "  documented(int planted) : at_{planted} {}\n\n private:\n  int at_;\n};",
             "function documented"),
            ("/// A type.\nstruct documented {\n  int x;\n\n  int planted;\n};",
             "field planted"),
            ("/// A type.\nenum class documented : int {\n  x,\n\n  planted,\n};",
             "enumerator planted"))
        findings = []
        with contextlib.ExitStack() as plants:
            for number, (declaration, reason) in enumerate(undocumented, 10):
                name = f"include/shale/planted_{number}.hpp"
                plants.enter_context(self.planted(name, "namespace shale {\n\n" + declaration +
                                                  "\n\n}  // namespace shale\n"))
                findings.append((name, f"{reason} has no doc comment"))
            self.expect("documented", *findings)

    def test_documented_and_hidden_names_pass(self):
        text = """
namespace shale {
namespace detail {
struct hidden {
  int x;
};
int helper();
}  // namespace detail

class forward;

/// Two of a kind.
int first();
int second();

/// A class.
class documented {
 public:
  ~documented();
  documented(documented&&) noexcept;
  documented(const documented&) = delete;

  /// A pair.
  int x() const { return 1; }
  int y() const {
    return 2;
  }
  int z = 0;  ///< metres

 private:
  int hidden();
};

}  // namespace shale
"""
        with self.planted("include/shale/slice.hpp", text):
            self.assertEqual(self.tidy("documented"), (0, []))

    # ---- documents ---------------------------------------------------------------------------

    def test_unlinked_document(self):
        with self.planted("docs/planted.md", "[itself](planted.md)\n"):
            self.expect("documents", ("docs/planted.md", "no other document links to it"))

    def test_link_to_nothing(self):
        with self.planted("docs/storage.md", "[gone](planted.md)\n"):
            self.expect("documents", ("docs/storage.md", "links to planted.md, which is not there"))

    def test_code_in_the_readme_that_is_not_compiled(self):
        with self.planted("README.md", "\n```cpp\nplanted();\n```\n"):
            self.expect("readme", ("README.md", "its C++ is in no example: planted();"))

    def test_invariant_without_test(self):
        with self.planted("src/core/layout.cpp", "//   layout.77  a rule that no test cites\n"):
            self.expect("invariants", ("src/core/layout.cpp", "no test cites invariant layout.77"))

    def test_citation_of_no_invariant(self):
        with self.planted("tests/storage/storage_test.cpp", "// storage.77 holds.\n"):
            self.expect("invariants", ("tests/storage/storage_test.cpp",
                                       "cites invariant storage.77, which none states"))


class Headers(Scratch):
    """On a tree of one sound header."""

    @classmethod
    def populate(cls):
        (cls.root / "include/shale").mkdir(parents=True)
        shutil.copyfile(cls.source / "include/shale/version.hpp",
                        cls.root / "include/shale/version.hpp")

    def test_sound_header_passes(self):
        self.assertEqual(self.tidy("headers"), (0, []))

    def test_header_that_does_not_compile_alone(self):
        with self.planted("include/shale/planted.hpp", "inline std::size_t planted;\n"):
            self.expect("headers", ("include/shale/planted.hpp", "does not compile alone"))

    def test_header_over_its_budget(self):
        with self.planted("include/shale/planted.hpp", "extern int planted;\n" * 75_001):
            self.expect("headers", ("include/shale/planted.hpp", "at most 75000 allowed"))

    def test_forbidden_header(self):
        text = "#include <iostream>\n#include <tbb/version.h>\n#include <zstd.h>\n"
        with self.planted("include/shale/planted.hpp", text):
            name = "include/shale/planted.hpp"
            self.expect("headers",
                        (f"{name}:1", "includes iostream, of no public header"),
                        (f"{name}:2", "includes tbb/version.h, of no public header"),
                        (f"{name}:3", "includes zstd.h, of no public header"),
                        (name + ": drags in iostream", "iostream"),
                        (name + ": drags in tbb", "tbb"),
                        (name + ": drags in zstd.h", "zstd.h"))

    def test_forbidden_header_behind_another(self):
        with self.planted("include/inner.h", "#include <boost/version.hpp>\n"):
            with self.planted("include/shale/planted.hpp", "#include <inner.h>\n"):
                status, lines = self.tidy("headers")
                for line in lines:
                    print(f"  [headers] {line}")
                self.assertEqual(status, 1)
                self.assertTrue(any(line.startswith(
                    "include/shale/planted.hpp: drags in boost") for line in lines), lines)


class Skipped(Scratch):
    """skipped.py, on what ctest writes."""

    RAN = '<testcase name="Dims.Work" status="run"><system-out>ok</system-out></testcase>'
    SKIPPED = """<testcase name="Dims.Skip" status="notrun">
<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>[ RUN      ] Dims.Skip
dims_test.cpp:2: Skipped
no device here
[  SKIPPED ] Dims.Skip (0 ms)</system-out></testcase>"""
    DISABLED = '<testcase name="Dims.Off" status="disabled"/>'
    IN_PART = """<testcase name="Command" status="run"><system-out>Ran 9 tests in 0.1s

OK (skipped=2)</system-out></testcase>"""

    @classmethod
    def populate(cls):
        pass

    def skipped(self, results, allowed=""):
        (self.root / "results.xml").write_text(f"<testsuite>{results}</testsuite>")
        (self.root / "skips.txt").write_text(allowed)
        run = subprocess.run([sys.executable, str(HERE / "skipped.py"), "results.xml",
                              "--allow", "skips.txt"],
                             cwd=self.root, capture_output=True, text=True)
        for line in run.stdout.splitlines():
            print(f"  [skipped] {line}")
        return run.returncode, (run.stdout + run.stderr).strip()

    def test_no_skip_passes(self):
        self.assertEqual(self.skipped(self.RAN), (0, ""))

    def test_skips_outside_the_list(self):
        for case, text in (
                (self.SKIPPED, "Dims.Skip: skipped: no device here [not in skips.txt]"),
                (self.DISABLED, "Dims.Off: skipped: disabled [not in skips.txt]"),
                (self.IN_PART, "Command: skipped: 2 of its tests skipped [not in skips.txt]")):
            self.assertEqual(self.skipped(self.RAN + case), (1, text))

    def test_skips_in_the_list_pass(self):
        status, text = self.skipped(self.RAN + self.SKIPPED, "# list\nDims.S*  needs a device\n")
        self.assertEqual(status, 0, text)
        self.assertIn("[allowed: needs a device]", text)

    def test_empty_results_and_reasons_fail(self):
        self.assertEqual(self.skipped("")[0], 1)
        self.assertEqual(self.skipped(self.RAN, "Dims.Skip\n")[0], 1)


class NewConcept(Copy):
    """What script/new makes in it."""

    def new(self, *arguments):
        run = subprocess.run([str(self.root / "script/new"), *arguments],
                             capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def entries(self, name):
        """The sources in the lists of a CMake file."""
        return re.findall(r"^ {4}(\w+\.cpp)\)?$", (self.root / name).read_text(), re.M)

    def test_new_files_are_built_tested_and_in_order(self):
        for options, floor, name in (((), "core", "zebra"), ((), "array", "aardvark"),
                                     (("--public",), "tensor", "mole")):
            before = self.entries(f"src/{floor}/CMakeLists.txt")
            status, text = self.new(*options, floor, name, "What it is.")
            self.assertEqual(status, 0, text)
            self.assertEqual(self.entries(f"src/{floor}/CMakeLists.txt"),
                             sorted([*before, f"{name}.cpp"]))
            self.assertIn(f"{name}_test.cpp", self.entries(f"tests/{floor}/CMakeLists.txt"))
            header = self.root / ("include/shale" if options else f"src/{floor}") / f"{name}.hpp"
            self.assertTrue(header.read_text().startswith("// What it is.\n#pragma once\n"))
            run = subprocess.run([self.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror",
                                  f"-I{self.root}/include", f"-I{self.root}/src",
                                  str(self.root / f"src/{floor}/{name}.cpp"),
                                  str(self.root / f"tests/{floor}/{name}_test.cpp")],
                                 capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(self.tidy("floors,tested,references,documented",
                                   self.root / "tests/tidy/tidy.py"), (0, []))

    def test_what_cannot_be_made_changes_nothing(self):
        before = (self.root / "src/core/CMakeLists.txt").read_text()
        for arguments, reason in (
                (("cellar", "zebra", "What it is."), "there is no floor 'cellar'; there are array,"),
                (("core", "Zebra", "What it is."), "'Zebra' is not in snake_case"),
                (("core", "striped", "What it is"), "a sentence"),
                (("core", "dims", "What it is."), "src/core/dims.cpp exists")):
            status, text = self.new(*arguments)
            self.assertEqual(status, 1, arguments)
            self.assertIn(reason, text)
        self.assertEqual((self.root / "src/core/CMakeLists.txt").read_text(), before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    arguments, rest = parser.parse_known_args()
    Scratch.source = arguments.root.resolve()
    Scratch.compiler = arguments.compiler
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
