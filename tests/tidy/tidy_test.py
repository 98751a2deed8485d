#!/usr/bin/python3
"""Plants one violation of each kind in a copy of the tree, and expects tidy.py to name the file and
the reason; the unchanged copy passes. Likewise for skipped.py. Prints what was found."""

import argparse
import contextlib
import os
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

    def expect(self, check, *findings, tool=HERE / "tidy.py"):
        """The check fails with exactly these findings: (file, part of the reason)."""
        status, lines = self.tidy(check, tool)
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
            "floors,tested,references,contracts,documents,readme,ancestors,invariants,skips,subjects")
        self.assertEqual((status, lines), (0, []))

    # ---- floors ------------------------------------------------------------------------------

    def test_include_of_a_higher_floor(self):
        with self.planted("src/core/dims.cpp", '#include "ops/graph/graph.hpp"\n'):
            self.expect("floors", ("src/core/dims.cpp",
                                   "core may not include ops/graph/graph.hpp of ops"))
        with self.planted("src/storage/system/pages.hpp", "#include <shale/tensor.hpp>\n"):
            self.expect("floors", ("src/storage/system/pages.hpp",
                                   "storage may not include shale/tensor.hpp of tensor"))
        with self.planted("src/format/pages/page.cpp", '#include "../../ops/graph/graph.hpp"\n'):
            self.expect("floors", ("src/format/pages/page.cpp", "format may not include"))

    def test_include_of_a_private_header(self):
        with self.planted("tools/terminal/units.cpp",
                          '#include "../src/core/../ops/graph/graph.hpp"\n'):
            self.expect("floors", ("tools/terminal/units.cpp",
                                   "tools may include public headers only"))
        with self.planted("include/shale/storage.hpp", '#include "storage/system/pages.hpp"\n'):
            self.expect("floors", ("include/shale/storage.hpp",
                                   "a public header may not include storage/system/pages.hpp"))

    def test_header_on_no_floor(self):
        with self.planted("include/shale/deep/planted.hpp"):
            self.expect("floors", ("include/shale/deep/planted.hpp", "belongs to no floor"))

    def test_include_of_a_later_room(self):
        tool = self.root / "tests/tidy/tidy.py"
        with self.planted("tests/tidy/floors.py", 'ROOMS = {\n    "src/core": ["lower", "."],\n',
                          "ROOMS = {\n"):
            self.expect("floors", ("tests/tidy/floors.py",
                                   "names a room without files: src/core/lower"), tool=tool)
            with self.planted("src/core/lower/planted.hpp"), \
                    self.planted("src/core/dims.cpp", '#include "core/lower/planted.hpp"\n'):
                self.assertEqual(self.tidy("floors", tool), (0, []))
                with self.planted("src/core/attic/planted.hpp"), \
                        self.planted("src/core/lower/planted.hpp", '#include "core/held.hpp"\n'):
                    self.expect("floors",
                                ("src/core/lower/planted.hpp:1",
                                 "room lower may not include core/held.hpp of room ."),
                                ("src/core/attic/planted.hpp", "is in no room: name attic"),
                                tool=tool)

    def test_include_of_a_later_room_inside_a_room(self):
        with self.planted("src/ops/kernels/strided/run_strided.hpp",
                          '#include "ops/kernels/dispatch/table.hpp"\n'):
            self.expect("floors",
                        ("src/ops/kernels/strided/run_strided.hpp",
                         "room strided may not include ops/kernels/dispatch/table.hpp of room dispatch"))

    # ---- mutations ---------------------------------------------------------------------------

    def test_mutations_that_no_longer_apply(self):
        table = "tests/mutations/table.py"
        tool = self.root / "tests/tidy/tidy.py"
        # Entries of the tree itself that no longer apply are another test's failure.
        before = [tuple(line.split(": ", 1)) for line in self.tidy("mutations", tool)[1]]
        with self.planted("src/format/transaction/commit.cpp", "nobody_holds_more()",
                          "held.pins.empty() || held.pins.back().last <= newest"), \
                self.planted("src/format/os/pins.cpp", "pin_set::take_lock(", "pin_set::take("), \
                self.planted(table, '"Forks.ATestThatIsNotThere*"', '"Forks.APlaceInTheQueue*"'):
            self.expect("mutations",
                        (table, "lost-generation-given-away: require_no_pin_above of "
                                "src/format/transaction/commit.cpp holds its text 0 times"),
                        (table, "pin-not-taken: src/format/os/pins.cpp defines no take"),
                        (table, "queue-inherited: there is no test Forks.ATestThatIsNotThere*"),
                        *before, tool=tool)

    # ---- tested ------------------------------------------------------------------------------

    def test_untested_source(self):
        with self.planted("src/core/planted.cpp"):
            self.expect("tested", ("src/core/planted.cpp", "untested: no file of tests includes"))
        with self.planted("include/shale/planted.hpp"):
            self.expect("tested", ("include/shale/planted.hpp", "untested: no file of tests"))

    def test_excuse_that_is_none(self):
        with self.planted("tests/core/dims_test.cpp", '#include "parallel/fold/fold.hpp"\n'):
            self.expect("tested", ("tests/tidy/tested.py",
                                   "src/parallel/fold/fold, which has a test"))

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
            ("tools/terminal/planted.cpp", "dead file: is in no build file"),
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

    # ---- contracts ---------------------------------------------------------------------------

    def plant_public(self, plants, *texts):
        """Headers of these texts, each in a namespace of its own; returns their names."""
        names = []
        for number, text in enumerate(texts, 10):
            names.append(f"include/shale/planted_{number}.hpp")
            plants.enter_context(self.planted(
                names[-1], '#include "shale/dims.hpp"\n\n'
                f"namespace shale::planted_{number} {{\n\n{text}\n\n}}\n"))
        return names

    def test_what_needs_a_contract(self):
        needy = (
            ("class planted {};", "class planted is not obvious"),
            ("struct planted {};", "class planted is not obvious"),
            ("enum class planted : int {};", "enum planted is not obvious"),
            ("using planted = int;", "type alias planted is not obvious"),
            ("inline constexpr int planted = 3;", "constant planted is not obvious"),
            ("template <class T>\nconcept planted = true;", "constant planted is not obvious"),
            ("/// A class.\nclass documented {};\nint planted() noexcept;",
             "function planted is not obvious"),
            ("template <class T>\nrequires(sizeof(T) > 1) T planted(T value) noexcept {\n"
             "  return value;\n}", "function planted is not obvious"),
            ("/// All of it.\nint documented() noexcept;\n\nint planted(const dims& at = {});",
             "function planted is not obvious"),
            ("/// A class.\nclass documented {\n public:\n  int planted() const noexcept;\n};",
             "function planted is not obvious"),
            ("/// A class.\nclass documented {\n  int hidden();\n\n public:\n"
             "  documented(int planted) noexcept : at_{planted} {}\n\n"
             "  documented() = default;\n\n private:\n  int at_;\n};",
             "function documented is not obvious"),
            ("/// A type.\nstruct documented {\n  int x;\n\n  int planted;\n};",
             "field planted is not obvious"),
            ("/// A type.\nenum class documented : int {\n  x,\n\n  planted,\n};",
             "enumerator planted is not obvious"),
            # Nearly obvious: a copy that may throw, accessors that may, or return something else.
            ("/// A class.\nclass documented {\n public:\n  documented(const documented& other);\n};",
             "function documented is not obvious"),
            ("/// A class.\nclass documented {\n public:\n  int at() const { return at_; }\n\n"
             " private:\n  int at_;\n};", "function at is not obvious"),
            ("/// A class.\nclass documented {\n public:\n  int first() const noexcept { return at_; }"
             "\n\n private:\n  int at_;\n};", "function first is not obvious"),
            ("/// A class.\nclass documented {\n public:\n  int end(int at) const noexcept"
             " { return at; }\n};", "function end is not obvious"),
            ("/// Takes an index.\nint planted(int at);",
             "function planted may throw, and its contract does not say what"),
            ("/// Takes an index.\nint planted(int which) noexcept;",
             "parameter which of planted says nothing"),
            ("/// Takes an index.\ntemplate <class T>\nint planted(T at) noexcept(sizeof(T) > 1);",
             "function planted may throw, and its contract does not say what"),
            ("/// A class. What was moved from throws.\nclass documented {\n public:\n"
             "  /// Takes an index.\n  int planted(int at);\n};",
             "function planted may throw, and its contract does not say what"),
            ("/// Takes an index.\n\nusing size_type = int;  ///< of what\n",
             "the comment (///) belongs to nothing"))
        with contextlib.ExitStack() as plants:
            names = self.plant_public(plants, *(text for text, _ in needy))
            self.expect("contracts", *zip(names, (reason for _, reason in needy)))

    def test_what_needs_none(self):
        with contextlib.ExitStack() as plants:
            self.plant_public(plants, """namespace detail {
struct hidden {
  int x;
};
int helper();
}  // namespace detail

class forward;

/// Two of a kind.
/// Throws   nothing
int first();
int second();

int third() noexcept;   ///< behind it
int fourth() noexcept;  ///< behind it, too

/// What a number may be.
enum class parity { even, odd };

/// A base.
/// Throws   invalid_argument from every member
class base {
 public:
  virtual ~base() = default;

  /// Counts.
  virtual int count() = 0;
};

/// A class.
class documented : public base {
 public:
  ~documented() override;
  documented(documented&&) noexcept;
  documented& operator=(documented&&) noexcept;
  documented(const documented&) = delete;
  friend bool operator==(const documented&, const documented&) noexcept = default;

  using value_type = int;

  int count() override;

  int x() const noexcept { return x_; }

  int size() const noexcept {
    return 2 * x_;
  }

  /// A pair.
  /// Throws   out_of_memory
  int a() const { return 1; }
  int b() const {
    return 2;
  }
  int z = 0;  ///< metres

 private:
  int hidden();
  int x_;
};

/// Locks a number.
class lock {
 public:
  explicit lock(int number) noexcept;
  lock(const lock&) = delete;
};

/// Made with these.
struct options {
  int first = 0;

  parity which = parity::even;
};
""")
            self.assertEqual(self.tidy("contracts"), (0, []))

    def test_headers_that_the_compiler_refuses(self):
        with self.planted("include/shale/planted.hpp", "#pragma once\nplanted here;\n"):
            self.expect("contracts", ("include/shale/planted.hpp:2", "unknown type name 'planted'"))

    # ---- documents ---------------------------------------------------------------------------

    def test_unlinked_document(self):
        with self.planted("docs/planted.md", "[itself](planted.md)\n"):
            self.expect("documents", ("docs/planted.md", "no other document links to it"))

    def test_link_to_nothing(self):
        with self.planted("docs/storage.md", "[gone](planted.md)\n"):
            self.expect("documents", ("docs/storage.md", "links to planted.md, which is not there"))

    def test_block_of_no_language(self):
        with self.planted("docs/storage.md", "\n```\nplanted();\n```\n\n```cpp\n```\n"):
            self.expect("documents", ("docs/storage.md", "a block without a language"))

    def test_code_in_the_readme_that_is_not_compiled(self):
        with self.planted("README.md", "\n```cpp\nplanted();\n```\n"):
            self.expect("readme", ("README.md", "its C++ is in no example: planted();"))

    def test_name_of_an_ancestor_without_an_answer(self):
        with self.planted("tests/ancestors/names.txt", "plantedAll\n"):
            self.expect("ancestors", ("tests/ancestors/names.txt",
                                      "docs/from-torch.md has no row for plantedAll"))

    def test_name_of_an_ancestor_that_is_missing_without_being_listed(self):
        with self.planted("docs/from-torch.md", "| `plantedOne` | Not yet |\n"):
            with self.planted("tests/ancestors/names.txt", "# Others\nplantedOne\n"):
                self.expect("ancestors", ("tests/ancestors/names.txt", "'not yet' for plantedOne"))

    def test_name_of_an_ancestor_that_is_no_longer_missing(self):
        with self.planted("tests/ancestors/names.txt", "cumsum\n"):
            self.expect("ancestors", ("tests/ancestors/names.txt", "'not yet' for cumsum"))

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
        with self.planted("include/shale/planted.hpp", "extern int planted;\n" * 50_901):
            self.expect("headers", ("include/shale/planted.hpp", "at most 50900 allowed"))

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


class Commits(Scratch):
    """On a history of its own."""

    LONG = "A subject that goes on and on, until no line of a terminal can hold all of it"

    @classmethod
    def populate(cls):
        shutil.copytree(HERE, cls.root / "tests/tidy", ignore=shutil.ignore_patterns("__pycache__"))
        cls.git("init", "-q", "-b", "main")
        cls.commit(cls.LONG + " (before)")
        base = cls.git("rev-parse", "HEAD").strip()
        path = cls.root / "tests/tidy/commits.py"
        path.write_text(re.sub(r'SUBJECTS_SINCE = "\w+"', f'SUBJECTS_SINCE = "{base}"',
                               path.read_text()))

    @classmethod
    def git(cls, *arguments, folder=None):
        # Whoever runs this may sign commits, or name branches otherwise.
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(["git", "-C", str(folder or cls.root), "-c", "user.name=Tidy",
                               "-c", "user.email=tidy@example.org", *arguments],
                              env=environment, check=True, capture_output=True, text=True).stdout

    @classmethod
    def commit(cls, subject):
        cls.git("commit", "-q", "--allow-empty", "-m", subject + "\n\n" + 80 * "a body is free ")

    def subjects(self):
        return self.tidy("subjects", self.root / "tests/tidy/tidy.py")

    def setUp(self):
        base = self.git("rev-list", "--max-parents=0", "HEAD").strip()
        self.git("reset", "-q", "--soft", base)

    def test_subjects_of_72_columns_pass(self):
        self.commit(71 * "é" + "s")
        self.assertEqual(self.subjects(), (0, []))

    def test_longer_subjects_since_the_base_are_found(self):
        self.commit(self.LONG)
        self.commit("A short one")
        status, lines = self.subjects()
        self.assertEqual((status, len(lines)), (1, 1), lines)
        self.assertIn(f"its subject has {len(self.LONG)} columns, at most 72 allowed: {self.LONG}",
                      lines[0])

    def shallow(self, depth):
        """What is found in a clone of so many commits."""
        with tempfile.TemporaryDirectory(prefix="shale-tidy-") as folder:
            self.git("clone", "-q", "--depth", str(depth), f"file://{self.root}", folder)
            run = subprocess.run([sys.executable, str(self.root / "tests/tidy/tidy.py"),
                                  "--root", folder, "--only", "subjects"],
                                 capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        return run.returncode, run.stdout.splitlines()

    def test_history_without_the_base_is_its_last_commit(self):
        self.commit(self.LONG)
        self.commit("A short one")
        self.commit("The last one")
        self.assertEqual(self.shallow(2), (0, []))
        self.commit(self.LONG)
        status, lines = self.shallow(2)
        self.assertEqual((status, len(lines)), (1, 1), lines)
        self.assertIn(self.LONG, lines[0])

    def test_merges_pass(self):
        self.commit("A short one")
        self.git("checkout", "-q", "-b", "side", "HEAD~1")
        self.commit("Another short one")
        self.git("merge", "-q", "--no-ff", "-m", self.LONG, "main")
        self.git("checkout", "-q", "-B", "main")
        self.git("branch", "-q", "-D", "side")
        self.assertEqual(self.subjects(), (0, []))
        self.assertEqual(self.shallow(1), (0, []))

    def test_tree_without_history_passes(self):
        self.commit(self.LONG)
        (self.root / ".git").rename(self.root / "elsewhere")
        try:
            self.assertEqual(self.subjects(), (0, []))
        finally:
            (self.root / "elsewhere").rename(self.root / ".git")


class Snippets(Scratch):
    """snippets.py, on a library of one function."""

    @classmethod
    def populate(cls):
        (cls.root / "include/shale").mkdir(parents=True)
        (cls.root / "include/shale/shale.hpp").write_text("""// A library.
//
//   const int four = twice(2);
//
//   $ twice words
//
// No code: it says more than code does
//   and goes on.
#pragma once
namespace shale {
class tensor; class container; class memory_pool; class executor;

/// Twice a number, as `int eight = twice(4);` and `twice(4) + words` say. Or:
///
///   if (twice(1) == 2) { … }
///
///   | four | twice(2) |
int twice(int number);
}  // namespace shale
""")

    def snippets(self):
        run = subprocess.run([sys.executable, str(HERE / "snippets.py"), "--root", str(self.root),
                              "--compiler", self.compiler], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        for line in run.stdout.splitlines():
            print(f"  [snippets] {line}")
        return run.returncode, re.findall(r"^(\S+:\d+):\d+: error: ", run.stdout, re.M), run.stdout

    def test_code_that_compiles_passes(self):
        self.assertIn("3 snippets in 1 files", self.snippets()[2])
        with self.planted("docs/sound.md", """
<!-- cpp
extern int hidden;
-->

Written `int one = twice(hidden);`, called `thrice(1)`.

```cpp
const int two = twice(1);
return argc + two + hidden;
```

```text
thrice(2)
```

```cpp
#include <vector>

template <class T>
std::vector<T> all() {
  return {shale::twice(1), …};
}
```
"""), self.planted("docs/calls.md", """
<!-- cpp calls
extern int hidden;
-->

| `thrice(1)` | `twice(hidden)`, `twice`, `thrice(1, …)` |
"""):
            status, errors, text = self.snippets()
            self.assertEqual((status, errors), (0, []))
            self.assertIn("7 snippets in 3 files", text)

    def test_code_that_does_not_is_found(self):
        with self.planted("docs/block.md", "```cpp\nint one = twice(1);\nplanted(one);\n```\n"), \
                self.planted("docs/hidden.md", "<!-- cpp\nextern int hidden;\n-->\n"), \
                self.planted("docs/other.md", "Say\n`twice(hidden);` there.\n"), \
                self.planted("docs/calls.md", "<!-- cpp calls\n-->\n| a | `planted(1)` |\n"), \
                self.planted("include/shale/opening.hpp", "// A header.\n//\n//   planted(1);\n"), \
                self.planted("include/shale/function.hpp", "/// A function, as `auto one =\n"
                             "/// planted(1);` says.\n"), \
                self.planted("include/shale/member.hpp", "class one {\n  /// A member:\n  ///\n"
                             "  ///   twice(1)\n  ///\n  /// of one.\n"):
            status, errors, _ = self.snippets()
            self.assertEqual(status, 1)
            self.assertEqual(sorted(set(errors)), [
                "docs/block.md:3", "docs/calls.md:3", "docs/other.md:2",
                "include/shale/function.hpp:1", "include/shale/member.hpp:4",
                "include/shale/opening.hpp:3"])

    def test_tree_without_code_fails(self):
        with self.planted("include/shale/shale.hpp"):
            (self.root / "include/shale/shale.hpp").write_text("#pragma once\n")
            status, _, text = self.snippets()
            self.assertEqual(status, 1)
            self.assertIn("0 snippets in 0 files", text)


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
        return re.findall(r"^ {4}([\w/]+\.cpp)\)?$", (self.root / name).read_text(), re.M)

    def test_new_files_are_built_tested_and_in_order(self):
        for options, floor, room, name in (((), "core", "", "zebra"),
                                           ((), "array", "elements/", "aardvark"),
                                           (("--public",), "tensor", "", "mole")):
            before = self.entries(f"src/{floor}/CMakeLists.txt")
            status, text = self.new(*options, f"{floor}/{room}".rstrip("/"), name, "What it is.")
            self.assertEqual(status, 0, text)
            self.assertEqual(self.entries(f"src/{floor}/CMakeLists.txt"),
                             sorted([*before, f"{room}{name}.cpp"]))
            self.assertIn(f"{name}_test.cpp", self.entries(f"tests/{floor}/CMakeLists.txt"))
            folder = "include/shale" if options else f"src/{floor}/{room}"
            header = self.root / folder / f"{name}.hpp"
            self.assertTrue(header.read_text().startswith("// What it is.\n#pragma once\n"))
            run = subprocess.run([self.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror",
                                  f"-I{self.root}/include", f"-I{self.root}/src",
                                  str(self.root / f"src/{floor}/{room}{name}.cpp"),
                                  str(self.root / f"tests/{floor}/{name}_test.cpp")],
                                 capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(self.tidy("floors,tested,references,contracts",
                                   self.root / "tests/tidy/tidy.py"), (0, []))

    def test_what_cannot_be_made_changes_nothing(self):
        before = (self.root / "src/core/CMakeLists.txt").read_text()
        for arguments, reason in (
                (("cellar", "zebra", "What it is."), "there is no floor 'cellar'; there are array,"),
                (("array", "zebra", "What it is."), "those of array are array/elements, array/"),
                (("core/attic", "zebra", "What it is."), "core has no rooms: give 'core'"),
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
