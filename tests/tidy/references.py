"""Dead files: what lies in the tree and nothing refers to."""

import functools
import os
import re

from house import BUILD_FILES, CODE, FOLDERS

# Names files that there are none of.
PLANTS = "tests/tidy/tidy_test.py"

WORD = r"[\w.+-]"


@functools.lru_cache(maxsize=None)
def without_comments(house, name):
    """A build file's text; a comment does not build anything."""
    return re.sub(r"(^|\s)#[^\n]*", r"\1", house.text(name), flags=re.M)


@functools.lru_cache(maxsize=None)
def named_files(house, build_file):
    """(expression of a path, whether it has variables) for all that looks like a file; a variable
    stands for anything within one folder."""
    folder = os.path.dirname(build_file)
    if build_file.endswith(".cmake"):
        folder = os.path.dirname(folder)  # it works in the folder of the one that includes it
    result = []
    for token in re.findall(r'[^\s()";:\\]+', without_comments(house, build_file)):
        here = token.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
        top = token.replace("${PROJECT_SOURCE_DIR}/", "")
        if "." not in token or not here or token.startswith("/"):
            continue
        # Units that are generated from a list include their sources from src.
        paths = [top] if top != token else [f"{folder}/{here}"] + ["src/" + here] * ("$" in here)
        for path in map(os.path.normpath, paths):
            parts = re.split(r"\$\{\w+\}", path)
            result.append((re.compile("[^/]*".join(map(re.escape, parts))), len(parts) > 1))
    return result


def is_built(house, name):
    """Whether a build file names it, as it is or by a variable that lists its stem."""
    stem = os.path.splitext(os.path.basename(name))[0]
    for build_file in house.build_files:
        for path, by_variable in named_files(house, build_file):
            if path.fullmatch(name):
                words = without_comments(house, build_file)
                if not by_variable or re.search(rf"(?<!{WORD}){re.escape(stem)}(?!{WORD})", words):
                    return True
    return False


@functools.lru_cache(maxsize=None)
def included_files(house):
    return {file for name in house.files if name.endswith(CODE)
            for _, _, file in house.includes(name) if file is not None and file != name}


def mentioned(house, name, pattern, among=None):
    expression = re.compile(pattern)
    return any(expression.search(house.text(other)) for other in among or house.files
               if other not in (name, PLANTS) and "/corpus/" not in other)


def is_added(house, name):
    """Whether a CMakeLists.txt's folder is one that another one adds, or that a script builds."""
    folder = os.path.dirname(name)
    for other in house.build_files:
        text = without_comments(house, other)
        for target in re.findall(r"add_subdirectory\(([^)]+)\)", text):
            path = os.path.normpath(os.path.join(os.path.dirname(other), target))
            if path == folder:
                return True
            if "$" in target and os.path.dirname(path) == os.path.dirname(folder):
                if re.search(rf"\b{re.escape(os.path.basename(folder))}\b", text):
                    return True
    return mentioned(house, name, rf"/ \"{re.escape(os.path.basename(folder))}\"")


def reason_of_death(house, name):
    """Why a file is dead; None if it is alive."""
    base = os.path.basename(name)
    stem, suffix = os.path.splitext(base)
    exactly = rf"(?<!{WORD}){re.escape(base)}(?!{WORD})"
    corpus = re.match(r"tests/fuzz/corpus/([^/]+)/", name)
    if corpus:
        harness = rf"shale_add_fuzzer\({corpus.group(1)}\b"
        return None if mentioned(house, name, harness, house.build_files) else (
            f"corpus of no harness: no shale_add_fuzzer({corpus.group(1)} …)")
    if base == "CMakeLists.txt":
        return None if is_added(house, name) else "no build file adds its folder"
    if name.endswith(BUILD_FILES):
        included = rf"include\(([^)]*/)?{re.escape(stem)}(\.cmake)?\)"
        return None if mentioned(house, name, included, house.build_files) else (
            "no build file includes it")
    if suffix == ".hpp":
        return None if name in included_files(house) or name == "include/shale/shale.hpp" else (
            "nobody includes it")
    if suffix == ".cpp":
        return None if is_built(house, name) else "is in no build file"
    if suffix == ".py" and re.search(rf"^(from {stem} import|import .*\b{stem}\b)", "\n".join(
            house.text(f) for f in house.under(os.path.dirname(name), suffixes=(".py",))
            if f != name), re.M):
        return None
    if name.startswith("script/") and suffix == "":
        exactly = rf"(?<!{WORD}){re.escape(name)}(?!{WORD})"
    # Decisions are an archive, found by its folder.
    if os.path.dirname(name) == "docs/decisions":
        return None if mentioned(house, name, r"decisions/\)") else "nobody refers to its folder"
    return None if mentioned(house, name, exactly) else "nobody mentions it"


def check_references(house):
    """Every file is built, included, linked or mentioned by another one."""
    for name in house.under(*FOLDERS):
        reason = reason_of_death(house, name)
        if reason is not None:
            house.add(name, f"dead file: {reason}")
