#!/usr/bin/python3
"""Drives `shale doctor` as its users do. The facts that Python finds in the system are the oracle.

Usage: doctor_test.py PATH/TO/shale [unittest arguments]
"""

import json
import os
import pathlib
import platform
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

SHALE = None
# No processor has both the instructions of Bulldozer and those of SkylakeX.
UNUSABLE_BLAS_KERNELS = ("SkylakeX" if " fma4" in pathlib.Path("/proc/cpuinfo").read_text()
                         else "Bulldozer")
SOUND, PROBLEMS, FAILED = 0, 1, 3
LINE = re.compile(r"^  (ok|unknown|note|problem) +\S")

# Gives one command its own shared memory and, on request, its own /proc and /sys. $1 is a folder
# with the initial content of /dev/shm; at the end it has the content that remains.
APART = """
before=$1 hide=$2; shift 2
mount -t tmpfs tmpfs /dev/shm && cp -a "$before"/. /dev/shm/ || exit 99
if [ "$hide" = yes ]; then mount -t tmpfs tmpfs /sys && mount -t tmpfs tmpfs /proc || exit 99; fi
"$@"
code=$?
rm -f "$before"/* && cp -a /dev/shm/. "$before"/
exit $code
"""


def segment(lifetime, size):
    """A segment of shared memory without an owner, because no process holds its lock."""
    return struct.pack("<8sII", b"SHALEshm", 1, lifetime).ljust(4096, b"\0") + bytes(size)


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="shale-doctor-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.place = self.path / "place"
        self.shm = self.path / "shm"
        self.place.mkdir()
        self.shm.mkdir()

    # ---- verbs -----------------------------------------------------------------------------------

    def run_command(self, command, **options):
        done = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=120,
                              **options)
        self.out, self.err, self.code = done.stdout, done.stderr, done.returncode
        self.assertIn(self.code, (SOUND, PROBLEMS), f"{self.out}\n{self.err}")
        self.assertEqual(self.err, "")
        return done

    def text(self, *arguments, **options):
        self.run_command([SHALE, "doctor", *arguments], **options)
        return self.out

    def json(self, *arguments, **options):
        self.run_command([SHALE, "doctor", "--json", *arguments], **options)
        return self.parsed()

    def parsed(self):
        found = json.loads(self.out)
        self.assertEqual(self.code, PROBLEMS if found["problems"] else SOUND)
        return found

    def apart(self, *arguments, hide="no"):
        """Runs `shale doctor` in a mount namespace of its own with the segments of self.shm."""
        namespace = ["unshare", "--mount"] if os.geteuid() == 0 else [
            "unshare", "--map-root-user", "--mount"]
        inside = [*namespace, "sh", "-c", APART, "sh", self.shm, hide]
        probe = subprocess.run([*map(str, inside), SHALE, "version"], capture_output=True)
        if probe.returncode != 0:
            self.skipTest("no namespace of one's own, or this build needs /proc")
        return self.run_command([*inside, SHALE, "doctor", *arguments])

    def check(self, found, name, topic=None):
        """The only check with this name."""
        hits = [c for c in found["checks"] if c["name"] == name and topic in (None, c["topic"])]
        self.assertEqual(len(hits), 1, [c["name"] for c in found["checks"]])
        return hits[0]

    def leftover(self, name=".dem.npy.0123456789abcdef.partial"):
        """Makes the temporary file of a writer that does not run any more."""
        path = self.place / name
        path.write_bytes(b"half of it" * 1000)
        return path

    def being_written(self, name=".dem.npy.fedcba9876543210.partial"):
        """Makes a temporary file that this process has open until the test ends."""
        file = open(self.place / name, "w")
        self.addCleanup(file.close)
        file.write("not yet whole")
        file.flush()
        return self.place / name

    # ---- facts -----------------------------------------------------------------------------------

    def test_text_is_facts_with_verdicts_in_80_columns(self):
        lines = self.text(self.place, "/dev/shm").splitlines()
        for line in lines:
            # Segments of others are in the text, too; a name has up to 200 bytes.
            names_something = "/" in line or line[11:].startswith("segment ")
            self.assertTrue(len(line) <= 80 or line.startswith(" " * 30) or names_something, line)
            self.assertTrue(line.isprintable(), line)
        topics = [line for line in lines if line and not line.startswith(" ")]
        self.assertEqual(topics[:-1], ["versions", "processor", "memory", "limits", "memory pool",
                                       "shared memory", str(self.place), "/dev/shm"])
        self.assertRegex(topics[-1], r"^(no|\d+) problems?, (no|\d+) notes?$")
        verdicts = [LINE.match(line).group(1) for line in lines if LINE.match(line)]
        self.assertGreater(len(verdicts), 30)
        self.assertEqual("problem" in verdicts, not topics[-1].startswith("no problems"))
        self.assertEqual(self.code, PROBLEMS if "problem" in verdicts else SOUND)

    def test_text_and_json_have_the_same_checks(self):
        # Other processes may make or remove shared segments between the two calls. A segment has a
        # line of its own, or they share one.
        def without_segments(names):
            return [name for name in names if not name.startswith("segment")]

        names = [line[11:26].strip() for line in self.text(self.place).splitlines()
                 if LINE.match(line)]
        found = [check["name"] for check in self.json(self.place)["checks"]]
        self.assertEqual(without_segments(found), without_segments(names))
        self.assertTrue(any(name.startswith("segment") for name in found))

    def test_json_agrees_with_what_python_knows(self):
        found = self.json()
        self.assertEqual(sorted(found), sorted(
            "problems notes checks versions processor memory limits huge_pages pool shared_memory "
            "paths reclaimed".split()))
        for number in ("problems", "notes"):
            self.assertEqual(found[number], sum(c["verdict"] == number[:-1]
                                                for c in found["checks"]))
        version = json.loads(subprocess.run([SHALE, "version", "--json"], check=True,
                                            capture_output=True).stdout)
        for key in ("shale", "format", "compiler", "libraries"):
            self.assertEqual(found["versions"][key], version[key])
        self.assertEqual(found["processor"]["isa"], version["isa"])
        self.assertEqual(found["versions"]["kernel"],
                         f"{platform.system()} {platform.release()} {platform.machine()}")
        self.assertEqual(found["processor"]["usable"], len(os.sched_getaffinity(0)))
        self.assertEqual(found["processor"]["online"], os.sysconf("SC_NPROCESSORS_ONLN"))
        total = re.search(r"MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text())
        self.assertEqual(found["memory"]["total_bytes"], 1024 * int(total.group(1)))
        self.assertLess(0, found["memory"]["budget_bytes"])
        soft, hard = (None if n == resource.RLIM_INFINITY else n
                      for n in resource.getrlimit(resource.RLIMIT_NOFILE))
        self.assertEqual(found["limits"]["descriptors"], soft)
        self.assertEqual(found["limits"]["descriptors_hard"], hard)
        most = int(pathlib.Path("/proc/sys/vm/max_map_count").read_text())
        self.assertEqual(found["limits"]["mappings_max"], most)
        huge = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
        if huge.exists() and not (huge.parent / "hugepages-2048kB").exists():
            self.assertIn(f"[{found['huge_pages']['enabled']}]", huge.read_text())
        self.assertEqual(found["reclaimed"], {"segments": [], "files": []})

    def test_pool_gives_everything_back(self):
        found = self.json()
        pool = found["pool"]
        if pool["bytes"] == 0:
            self.skipTest("too little memory")
        self.assertEqual(pool["bytes"], 64 << 20)
        self.assertTrue(pool["all_clear"])
        steps = {step["step"]: step for step in pool["steps"]}
        self.assertEqual([step["step"] for step in pool["steps"]],
                         ["at first", "taken", "given back", "taken again", "trimmed"])
        self.assertEqual([steps[s]["live_bytes"] for s in ("at first", "given back", "trimmed")],
                         [0, 0, 0])
        self.assertGreaterEqual(steps["taken"]["live_bytes"], 64 << 20)
        self.assertEqual((steps["trimmed"]["hits"], steps["trimmed"]["misses"]), (1, 1))
        self.assertEqual(steps["trimmed"]["idle_bytes"], 0)
        self.assertLessEqual(pool["huge_bytes"], 64 << 20)

    def test_places_are_described(self):
        here = self.path / "a file"
        here.write_text("x")
        found = self.json(here, "/dev/shm", "/proc")
        file, shm, proc = found["paths"]
        mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
        self.assertEqual(shm["file_system"], [m[2] for m in mounts if m[1] == "/dev/shm"][-1])
        self.assertEqual(shm["mounted_at"], "/dev/shm")
        self.assertEqual((shm["reading"], shm["writing"]), ("mapped", "mapped"))
        self.assertEqual((shm["locks"], shm["reserves"]), (True, True))
        about = os.statvfs("/dev/shm")
        self.assertEqual(shm["size_bytes"], about.f_blocks * about.f_frsize)
        self.assertEqual(file["folder"], str(self.path))
        self.assertIn(file["reading"], ("mapped", "copied"))
        self.assertEqual(file["leftovers"], [])
        self.assertEqual((proc["file_system"], proc["reading"]), ("proc", "refused"))
        self.assertEqual(self.check(found, "mapping", "/proc")["verdict"], "problem")
        self.assertEqual(self.code, PROBLEMS)
        self.assertEqual(sorted(os.listdir(self.path)), ["a file", "place", "shm"])

    def test_places_in_brackets_are_taken_as_they_are(self):
        names = ["[old]", "[a,b]", "{}"]
        for name in names:
            (self.place / name).mkdir()
        found = self.json(*names, cwd=self.place)
        self.assertEqual([os.path.basename(place["path"]) for place in found["paths"]], names)
        self.assertEqual(self.json("{}", cwd=self.place)["paths"][0]["path"], found["paths"][2]["path"])

    def test_files_that_cannot_be_used_are_problems(self):
        sound, cut, pipe = (self.place / f"{name}.shale" for name in ("sound", "cut", "pipe"))
        subprocess.run([SHALE, "create", f"{sound}:a", "--shape", "3"], check=True,
                       capture_output=True)
        cut.write_bytes(sound.read_bytes()[:3000])
        os.mkfifo(pipe)
        for path, verdict in ((sound, "ok"), (cut, "problem"), (pipe, "problem")):
            found = self.json(path)
            self.assertEqual(self.check(found, "file")["verdict"], verdict, path)
            self.assertEqual(found["paths"][0]["file"]["not_opened"] is None, verdict == "ok")
        self.assertIsNone(self.json(self.place)["paths"][0]["file"])
        self.assertIn("cannot be used", self.text(cut))

    def test_places_that_are_not_there_are_errors(self):
        done = subprocess.run([SHALE, "doctor", self.path / "nosuch"], text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""))
        self.assertIn("nosuch", done.stderr)
        self.assertIn("[not_found]", done.stderr)

    # ---- problems --------------------------------------------------------------------------------

    def test_kernels_of_matrix_products(self):
        told = self.json(env={**os.environ, "OPENBLAS_CORETYPE": "Prescott"})["processor"]
        self.assertRegex(told["blas"], r"^OpenBLAS .*, Prescott \(OPENBLAS_CORETYPE is Prescott\)$")

    def test_kernels_of_matrix_products_that_the_processor_cannot_run(self):
        wrong = self.json(env={**os.environ, "OPENBLAS_CORETYPE": UNUSABLE_BLAS_KERNELS})
        self.assertEqual(self.check(wrong, "matrix products")["verdict"], "problem")
        self.assertIn("OPENBLAS_CORETYPE", self.check(wrong, "matrix products")["value"])
        self.assertIsNone(wrong["processor"]["blas"])
        self.assertEqual(self.code, PROBLEMS)

    def test_kernels_that_were_asked_for(self):
        forced = self.json(env={**os.environ, "SHALE_ISA": "baseline"})
        self.assertEqual(self.check(forced, "kernels")["verdict"], "note")
        self.assertEqual((forced["processor"]["isa"], forced["processor"]["forced_isa"]),
                         ("baseline", "baseline"))
        wrong = self.json(env={**os.environ, "SHALE_ISA": "abacus"})
        self.assertEqual(self.check(wrong, "kernels")["verdict"], "problem")
        self.assertIsNone(wrong["processor"]["isa"])
        self.assertEqual(self.code, PROBLEMS)

    def test_limits_of_the_process(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_NOFILE, (20, 4000))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        found = self.json(preexec_fn=limited)
        files = self.check(found, "open files")
        self.assertEqual((files["verdict"], files["command"]), ("problem", "ulimit -n 4000"))
        self.assertEqual(self.check(found, "file size")["verdict"], "note")
        self.assertEqual(found["limits"]["file_bytes"], 1 << 20)

    def test_processors_it_may_not_use(self):
        first = min(os.sched_getaffinity(0))
        found = self.json(preexec_fn=lambda: os.sched_setaffinity(0, {first}))
        self.assertEqual((found["processor"]["usable"], found["processor"]["threads"]), (1, 1))
        is_alone = found["processor"]["online"] == 1
        self.assertEqual(self.check(found, "processors")["verdict"], "ok" if is_alone else "note")

    def test_leftovers_of_killed_writers_are_named_and_stay(self):
        path, mine = self.leftover(), self.being_written()
        found = self.json(self.place)
        dead = self.check(found, "leftover")
        self.assertEqual(dead["verdict"], "problem")
        self.assertEqual(dead["command"], f"shale doctor --gc {self.place}")
        self.assertEqual(self.check(found, "being written")["verdict"], "ok")
        by_path = {leftover["path"]: leftover for leftover in found["paths"][0]["leftovers"]}
        self.assertEqual(by_path[str(path)]["target"], "dem.npy")
        self.assertEqual(by_path[str(mine)]["state"], "written")
        self.assertTrue(path.exists())
        self.assertIn(path.name, self.text(self.place))

    def test_names_from_strangers_are_printable(self):
        self.leftover(".x\x1b[2J.npy.0123456789abcdef.partial")
        self.assertNotIn("\x1b", self.text(self.place))
        self.assertIn("\\x1b[2J", self.out)

    # ---- reclaiming, and a system that tells little ----------------------------------------------

    def test_gc_removes_leftovers_and_says_so(self):
        path, mine = self.leftover(), self.being_written()
        (self.place / "dem.npy").write_text("what was there")
        self.apart("--json", "--gc", self.place, self.place / "dem.npy")
        found = self.parsed()
        self.assertEqual([len(place["leftovers"]) for place in found["paths"]], [1, 1])
        self.assertEqual([file["path"] for file in found["reclaimed"]["files"]], [str(path)])
        self.assertEqual(sorted(os.listdir(self.place)), [mine.name, "dem.npy"])
        self.leftover()
        self.apart("--gc", self.place)
        self.assertIn(f"removed {path}", self.out)

    def test_gc_leaves_files_that_only_resemble_leftovers(self):
        for name in ("report.new-2024-11", ".movie.2024.partial", "dem.npy.new-1-0",
                     ".movie.0123456789abcdef.partial"):
            (self.place / name).write_text("notes")
        names = sorted(os.listdir(self.place))
        self.apart("--gc", self.place)
        self.assertIn("nothing to reclaim", self.out)
        self.assertEqual(sorted(os.listdir(self.place)), names)

    def test_gc_reclaims_segments_of_killed_owners(self):
        (self.shm / "shale.dead").write_bytes(segment(0, 1 << 20))
        (self.shm / "shale.uncounted").write_bytes(segment(1, 1 << 20))
        (self.shm / "shale.kept").write_bytes(segment(2, 1 << 20))
        (self.shm / "foreign").write_bytes(b"x")
        self.apart("--json")
        found = self.parsed()
        self.assertEqual(self.code, PROBLEMS)
        self.assertEqual([(s["name"], s["bytes"], s["lifetime"], s["dead"])
                          for s in found["shared_memory"]["segments"]],
                         [("dead", 1 << 20, "creator", True), ("kept", 1 << 20, "manual", False),
                          ("uncounted", 1 << 20, "counted", True)])
        self.assertEqual(len(os.listdir(self.shm)), 4)
        self.apart("--gc")
        self.assertIn("reclaimed segment dead, 1.0 MiB\nreclaimed segment uncounted", self.out)
        self.assertEqual(sorted(os.listdir(self.shm)), ["foreign", "shale.kept"])
        self.apart("--gc", "--json")
        found = self.parsed()
        self.assertEqual(found["reclaimed"], {"segments": [], "files": []})
        self.assertEqual([s["name"] for s in found["shared_memory"]["segments"]], ["kept"])

    def test_without_proc_and_sys_it_says_what_is_unknown(self):
        self.apart("--json", self.place, hide="yes")
        found = self.parsed()
        for name, why in (("model", "/proc/cpuinfo"), ("available", "/proc/meminfo"),
                          ("pressure", "/proc/pressure/memory"), ("huge pages", "/sys/kernel"),
                          ("mappings", "/proc/sys/vm/max_map_count")):
            check = self.check(found, name)
            self.assertEqual(check["verdict"], "unknown")
            self.assertIn(why, check["value"])
        self.assertIsNone(found["memory"]["available_bytes"])
        # Sharing a tensor needs /proc/self/fd.
        self.assertEqual(self.check(found, "new segments")["verdict"], "problem")

    def test_ordinary_users_are_served(self):
        if os.geteuid() != 0:
            return  # as in every other test
        self.path.chmod(0o755)
        self.place.chmod(0o755)
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            subprocess.run([SHALE, "version"], check=True, capture_output=True, **options)
        except (PermissionError, subprocess.CalledProcessError):
            self.skipTest("the command cannot be run by another user from where it was built")
        path = self.leftover()
        found = self.json(self.place, **options)
        self.assertEqual(self.check(found, "writing")["value"], "Permission denied")
        self.assertEqual(found["paths"][0]["leftovers"][0]["state"], "unclear")
        self.assertTrue(path.exists())


if __name__ == "__main__":
    SHALE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
