"""Which test exercises which unit: every public header and every source of libshale."""

import os
import fnmatch
import re

from house import CODE

# Units whose header no test includes, by folder: the test that reaches them through another door,
# and why there is none of their own.
THROUGH = {
    "include/shale": {
        "apply_operands": ("tests/parallel/apply_test.cpp", "what a callable's signature says"),
    },
    "src/array": {
        "chunk_grid": ("tests/array/chunked_array_test.cpp", "regions across edges of chunks"),
        "chunk_store": ("tests/array/chunked_array_test.cpp", "chunks written and read"),
        "chunk_tiles": ("tests/array/chunked_array_test.cpp", "expressions over chunks"),
        "dense_bytes": ("tests/array/dense_array_test.cpp", "mapped and read arrays"),
        "read_ahead": ("tests/array/chunked_array_test.cpp", "expressions over chunks"),
        "snapshot": ("tests/array/container_test.cpp", "a part of shale/container.hpp"),
        "transaction_state": ("tests/array/transaction_test.cpp", "behind transaction"),
        "verification": ("tests/array/container_test.cpp", "container::verify"),
        "writable_array": ("tests/array/dense_array_test.cpp", "a part of shale/array.hpp"),
    },
    "src/format": {
        "commit": ("tests/format/crash_test.cpp", "every order of its stores"),
        "generation_view": ("tests/format/container_file_test.cpp", "a part of container_file"),
        "posix_file_system": ("tests/format/process_test.cpp", "behind the seam of tests"),
        "transaction": ("tests/format/container_file_test.cpp", "a part of container_file"),
        "transaction_commit": ("tests/format/crash_test.cpp", "every crash in a commit"),
        "types": ("tests/format/golden_test.cpp", "plain values in every call"),
    },
    "src/interop": {
        "input_file": ("tests/interop/npy_test.cpp", "every read"),
        "output_file": ("tests/interop/npy_test.cpp", "every write"),
    },
    "src/ops": {
        "axis_map": ("tests/ops/expr_random_test.cpp", "views of expressions"),
        "gemm": ("tests/ops/kernels/linalg_test.cpp", "matmul"),
        "generate": ("tests/ops/expr_test.cpp", "arange, tile and repeat"),
        "pass": ("tests/ops/expr_test.cpp", "eval"),
        "pass_across_grain": ("tests/ops/expr_files_test.cpp", "eval over mapped files"),
        "pass_by_tiles": ("tests/ops/expr_tiles_test.cpp", "eval over tile sources"),
        "pass_in_memory": ("tests/ops/expr_test.cpp", "eval over tensors"),
        "tape": ("tests/ops/expr_random_test.cpp", "every operation of eval"),
    },
    "src/ops/kernels": {
        "comparison": ("tests/ops/kernels/arithmetic_test.cpp", "through the table of kernels"),
        "complex_elementary": ("tests/ops/kernels/elementary_test.cpp", "through the table"),
        "extrema": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
        "moments": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
        "reduce_strided": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
        "strided": ("tests/ops/kernels/arithmetic_test.cpp", "through the table of kernels"),
        "sums": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
    },
    "src/parallel": {
        "copy": ("tests/ops/ops_test.cpp", "copies between dtypes and layouts"),
        "operands": ("tests/parallel/apply_test.cpp", "what apply accepts"),
        "worker_team": ("tests/parallel/apply_test.cpp", "every parallel call"),
    },
    "src/storage": {
        "address_reservation": ("tests/storage/mapped_file_test.cpp", "growth of mappings"),
        "file_space": ("tests/storage/mapped_file_test.cpp", "reserved space, full disks"),
        "heap_block": ("tests/storage/storage_test.cpp", "storage::allocate"),
        "mapped_block": ("tests/storage/mapped_file_test.cpp", "every mapping"),
        "mapped_paging": ("tests/storage/mapped_file_test.cpp", "every request to a mapping"),
        "partial_path": ("tests/storage/mapped_file_test.cpp", "files that are replaced"),
        "shared_segment": ("tests/storage/shared_memory_test.cpp", "every shared segment"),
        "storage_block": ("tests/storage/storage_test.cpp", "behind shale/storage.hpp"),
    },
    "src/tensor": {
        "strided_pair": ("tests/tensor/copy_test.cpp", "how copies walk two layouts"),
    },
}


def check_tested(house):
    """Every unit has a test: some file of tests includes its header (the one with its name, beside
    it or public), or a test has its name (`copy_test.cpp` of its floor), or THROUGH names one."""
    tests = [f for f in house.under("tests", suffixes=CODE) if not f.startswith("tests/fuzz/")]
    included = {file for name in tests for _, _, file in house.includes(name)}
    through = {f"{folder}/{stem}": test
               for folder, units in THROUGH.items() for stem, (test, _) in units.items()}

    headers, sources = house.under("include"), house.under("src", suffixes=(".cpp",))
    for name in [*headers, *sources]:
        unit, suffix = os.path.splitext(name)
        stem = os.path.basename(unit)
        own_test = f"{unit.replace('src/', 'tests/', 1)}_test.cpp"
        doors = {f"{unit}.hpp"} | ({f"include/shale/{stem}.hpp"} if suffix == ".cpp" else set())
        direct = bool(doors & included) or (suffix == ".cpp" and house.has(own_test))
        if unit in through:
            test = through.pop(unit)
            if direct:
                house.add("tests/tidy/tested.py", f"excuses {unit}, which has a test")
            elif not house.has(test):
                house.add("tests/tidy/tested.py", f"{unit}: there is no {test}")
        elif not direct:
            house.add(name, f"untested: no file of tests includes {' or '.join(sorted(doors))}")
    for unit in through:
        house.add("tests/tidy/tested.py", f"excuses {unit}, which does not exist")


def check_skips(house):
    """Every pattern of tests that may be skipped (tests/skips.txt) fits a test that there is."""
    tests = {".".join(found) for name in house.under("tests", suffixes=(".cpp",))
             for found in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", house.text(name), re.M)}
    tests |= set(re.findall(r"add_test\(NAME (\S+)", "\n".join(map(house.text, house.build_files))))
    for number, line in house.lines("tests/skips.txt"):
        if line.strip() and not line.startswith("#") and \
                not fnmatch.filter(tests, line.split()[0]):
            house.add(f"tests/skips.txt:{number}", f"there is no test {line.split()[0]}")
