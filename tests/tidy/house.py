"""The tree that the checks of tidy.py look at: its files, their texts and what includes what."""

import functools
import os
import pathlib
import re
import subprocess

FOLDERS = "bench cmake docs examples include script src tests tools".split()
CODE = (".cpp", ".hpp")
BUILD_FILES = ("CMakeLists.txt", ".cmake")

# Where an #include is looked up, after the folder of the including file.
INCLUDE_PATHS = ("include", "src", "tests", "tools", "bench")


class House:
    """Paths are relative to `root`, with slashes; findings are lines `file: reason`."""

    def __init__(self, root, compiler):
        self.root = pathlib.Path(root).resolve()
        self.compiler = compiler
        self.findings = []

    def add(self, where, what):
        self.findings.append(f"{where}: {what}")

    def git(self, *arguments):
        return subprocess.run(["git", "-C", str(self.root), *arguments], check=True,
                              capture_output=True, text=True).stdout

    @functools.cached_property
    def is_repository(self):
        """Whether git is there and keeps this tree; not one that this tree lies in."""
        try:
            top = self.git("rev-parse", "--show-toplevel").strip()
        except (OSError, subprocess.CalledProcessError):
            return False
        return pathlib.Path(top).resolve() == self.root

    @functools.cached_property
    def files(self):
        """Every file that git would commit; without git, every file of the tree."""
        if self.is_repository:
            names = self.git("ls-files", "-z", "--cached", "--others",
                             "--exclude-standard").split("\0")
        else:
            names = [p.name for p in self.root.iterdir()]
            for top in (*FOLDERS, ".ci"):
                for folder, _, inside in os.walk(self.root / top):
                    names += [str(pathlib.Path(folder, f).relative_to(self.root)) for f in inside]
        return sorted({n for n in names if (self.root / n).is_file() and "__pycache__/" not in n})

    def under(self, *folders, suffixes=("",)):
        starts = tuple(f"{folder}/" for folder in folders)
        return [f for f in self.files if f.startswith(starts) and f.endswith(tuple(suffixes))]

    def has(self, name):
        return name in self._names

    @functools.cached_property
    def _names(self):
        return set(self.files)

    @functools.lru_cache(maxsize=None)
    def text(self, name):
        return (self.root / name).read_text(errors="replace")

    def lines(self, name):
        return enumerate(self.text(name).splitlines(), 1)

    @functools.lru_cache(maxsize=None)
    def includes(self, name):
        """(line, text between the quotes, the file of this tree that it names or None), …"""
        result = []
        for number, line in self.lines(name):
            found = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
            if found:
                result.append((number, found.group(1), self._resolved(name, found.group(1))))
        return result

    def _resolved(self, name, target):
        for folder in (os.path.dirname(name), *INCLUDE_PATHS):
            path = os.path.normpath(os.path.join(folder, target))
            if self.has(path):
                return path
        return None

    @functools.cached_property
    def tests(self):
        """(suite, name) of every GoogleTest."""
        return {found for name in self.under("tests", suffixes=(".cpp",)) for found in
                re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", self.text(name), re.M)}

    @functools.cached_property
    def build_files(self):
        return [f for f in self.files if f.endswith(BUILD_FILES)]
