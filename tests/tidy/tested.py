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
    "src/array/elements": {
        "appended_part": ("tests/array/growth_test.cpp", "appends along every axis"),
        "chunk_places": ("tests/array/part_write_test.cpp", "every region and step"),
        "dense_bytes": ("tests/array/dense_array_test.cpp", "mapped and read arrays"),
        "mapped_checksums": ("tests/array/mapped_checksums_test.cpp", "comparing while reading"),
        "prefetch": ("tests/array/chunked_array_test.cpp", "expressions over chunks"),
    },
    "src/array/transaction": {
        "shared_transaction": ("tests/array/transaction_test.cpp", "arrays and elements as changed so far"),
    },
    "src/array/transaction/changes": {
        "array_changes": ("tests/array/transaction_test.cpp", "arrays that come, go and change names"),
        "attribute_changes": ("tests/array/level_attributes_test.cpp", "attributes of arrays and levels"),
        "catalog_lookup": ("tests/array/transaction_test.cpp", "names that there are not"),
        "commit_checksums": ("tests/array/dense_parts_test.cpp", "checksums of what changed"),
        "dense_resize": ("tests/array/dense_growth_test.cpp", "every resize of a dense array"),
        "running_write": ("tests/array/concurrency_test.cpp", "writes that a commit or an abort meets"),
        "shape_change": ("tests/array/growth_test.cpp", "every resize and append"),
        "staged_chunks": ("tests/array/growth_test.cpp", "chunks that a resize cuts through"),
        "transaction_chunks": ("tests/array/chunked_array_test.cpp", "chunks of transactions"),
        "transaction_end": ("tests/array/concurrency_test.cpp", "commits and aborts during writes"),
    },
    "src/array/transaction/state": {
        "base_generation": ("tests/array/forked_child_test.cpp", "pins of children"),
        "transaction_state": ("tests/array/transaction_test.cpp", "every call of transaction"),
        "written_array": ("tests/array/dense_array_test.cpp", "tensors that outlive commits"),
    },
    "src/format/bytes": {
        "types": ("tests/format/golden_test.cpp", "plain values in every call"),
    },
    "src/format/catalog": {
        "dense_checksums": ("tests/format/damage_test.cpp", "damage of a dense array's checksums"),
    },
    "src/format/chunks": {
        "chunk_entry": ("tests/format/verify_test.cpp", "entries that contradict their array"),
    },
    "src/format/codec": {
        "bitround": ("tests/format/codec_test.cpp", "every pipeline"),
        "compressors": ("tests/format/codec_test.cpp", "pipelines that compress"),
        "delta": ("tests/format/codec_test.cpp", "every pipeline"),
    },
    "src/format/generations": {
        "generation_view": ("tests/format/container_file_test.cpp", "what latest returns"),
        "replaced_file": ("tests/format/names_test.cpp", "names that lead to other files"),
        "retained_generations": ("tests/format/container_file_test.cpp", "space that is retained"),
        "shared_file": ("tests/format/names_test.cpp", "files that a container's name leads to"),
    },
    "src/format/os": {
        "bound_path": ("tests/format/names_test.cpp", "what opened containers follow"),
        "lock_holders": ("tests/format/locks_test.cpp", "what errors of locks say"),
        "posix_file": ("tests/format/process_test.cpp", "everything that tests do not simulate"),
        "posix_file_system": ("tests/format/process_test.cpp", "everything that tests do not simulate"),
    },
    "src/format/pages": {
        "tree_changes": ("tests/format/tree_test.cpp", "how a tree is changed"),
    },
    "src/format/space": {
        "space_record": ("tests/format/space_test.cpp", "every entry of the map"),
        "unused_section": ("tests/format/space_test.cpp", "space that transactions take and release"),
    },
    "src/format/transaction": {
        "page_writes": ("tests/format/container_file_test.cpp", "the pages of commits"),
        "changed_arrays": ("tests/format/container_file_test.cpp", "changes of every kind"),
        "generation_space": ("tests/format/container_file_test.cpp", "extents given and taken"),
    },
    "src/interop": {
        "input_file": ("tests/interop/npy_test.cpp", "every read"),
        "output_file": ("tests/interop/npy_test.cpp", "every write"),
    },
    "src/interop/t7": {
        "cursor": ("tests/interop/t7_test.cpp", "files in both encodings"),
        "parser": ("tests/interop/t7_hostile_test.cpp", "trees that are sound, and those that are not"),
        "paths": ("tests/interop/t7_test.cpp", "the names of tensors"),
        "t7_writer": ("tests/interop/t7_test.cpp", "a part of shale/t7.hpp"),
        "text_elements": ("tests/interop/t7_test.cpp", "elements of ASCII files"),
    },
    "src/ops/graph": {
        "node": ("tests/ops/expr_test.cpp", "the nodes of every expression, and deep graphs"),
    },
    "src/ops/leaves": {
        "indices": ("tests/ops/take_test.cpp", "the indices of take"),
        "indexed_generator": ("tests/ops/take_test.cpp", "take and its kind"),
        "generate": ("tests/ops/expr_test.cpp", "arange, tile and repeat"),
        "placed_points": ("tests/ops/indexed_tiles_test.cpp", "the elements and tiles of random indices"),
        "reading_plan": ("tests/ops/indexed_tiles_test.cpp", "the elements and tiles of random views"),
        "repeated": ("tests/ops/expr_test.cpp", "tile and repeat"),
        "window_generator": ("tests/ops/windows_test.cpp", "correlate and convolve"),
    },
    "src/ops/functions/linear_algebra": {
        "contraction": ("tests/ops/einsum_test.cpp", "einsum, tensordot and addbmm"),
        "row_blocks": ("tests/ops/tall_qr_test.cpp", "tall matrices of many heights and widths"),
        "subscripts": ("tests/ops/einsum_test.cpp", "random subscripts, and those that are refused"),
    },
    "src/ops/functions/indexing": {
        "indexing": ("tests/ops/indexing_test.cpp", "expr::index with arrays"),
    },
    "src/ops/evaluation": {
        "gathered_inputs": ("tests/ops/take_test.cpp", "indices and inputs that overlap an output"),
        "operand_parts": ("tests/ops/rolling_test.cpp", "operands of every kind"),
        "source_reads": ("tests/array/part_write_test.cpp", "values that read what they replace"),
        "transformed_windows": ("tests/ops/transformed_windows_test.cpp", "correlate and convolve"),
        "compile": ("tests/ops/expr_random_test.cpp", "every operation of eval"),
    },
    "src/ops/linalg": {
        "matrix_batch": ("tests/ops/linear_systems_test.cpp", "every batch of matrices"),
        "inner_product": ("tests/ops/kernels/linalg_test.cpp", "dot"),
    },
    "src/ops/passes": {
        "pass": ("tests/ops/expr_test.cpp", "eval"),
        "reduction_states": ("tests/ops/expr_test.cpp", "reductions of eval"),
        "tape": ("tests/ops/expr_random_test.cpp", "every operation of eval"),
    },
    "src/ops/kernels/elementary": {
        "complex_elementary": ("tests/ops/kernels/elementary_test.cpp", "through the table"),
        "elementary": ("tests/ops/kernels/elementary_test.cpp", "through the table of kernels"),
    },
    "src/ops/kernels/elementwise": {
        "arithmetic": ("tests/ops/kernels/arithmetic_test.cpp", "through the table of kernels"),
        "casts": ("tests/ops/kernels/casts_test.cpp", "through the table of kernels"),
        "float_arithmetic": ("tests/ops/kernels/arithmetic_test.cpp", "through the table of kernels"),
        "comparison": ("tests/ops/kernels/arithmetic_test.cpp", "through the table of kernels"),
    },
    "src/ops/kernels/folds": {
        "arg_extrema": ("tests/ops/kernels/arg_extrema_test.cpp", "through the table of kernels"),
        "extrema": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
        "moments": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
        "sums": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
    },
    "src/ops/kernels/operations": {
        "operations": ("tests/ops/kernels/arithmetic_test.cpp", "through the table of kernels"),
    },
    "src/ops/kernels/strided": {
        "reduce_strided": ("tests/ops/kernels/reducers_test.cpp", "through the table of kernels"),
        "run_strided": ("tests/ops/kernels/arithmetic_test.cpp", "through the table of kernels"),
        "scan_strided": ("tests/ops/kernels/scans_test.cpp", "through the table of kernels"),
    },
    "src/ops/sorting": {
        "key_search": ("tests/ops/searching_test.cpp", "searchsorted and unique"),
        "row_sort": ("tests/ops/sorting_test.cpp", "sort and argsort"),
        "row_selection": ("tests/ops/order_statistics_test.cpp", "topk, kthvalue and quantiles"),
    },
    "src/parallel/fold": {
        "fold": ("tests/ops/expr_test.cpp", "reductions of eval"),
    },
    "src/parallel/mapped": {
        "file_stage": ("tests/parallel/mapped_tiles_test.cpp", "tiles that are not in the page cache"),
    },
    "src/parallel/operands": {
        "loop_operand": ("tests/parallel/apply_test.cpp", "operands of every call"),
    },
    "src/parallel/pass": {
        "copy": ("tests/ops/ops_test.cpp", "copies between dtypes and layouts"),
        "prepare": ("tests/parallel/apply_test.cpp", "operands of every call"),
        "typed_operands": ("tests/parallel/apply_test.cpp", "operands of other dtypes than the function's"),
        "unit_states": ("tests/ops/scans_test.cpp", "reductions and scans in every way"),
        "unit_work": ("tests/parallel/pass_loop_test.cpp", "passes in every way"),
    },
    "src/parallel/plan": {
        "cuts": ("tests/parallel/plan_test.cpp", "tiles and blocks of plans"),
        "strided_axes": ("tests/parallel/plan_test.cpp", "axes of plans"),
    },
    "src/parallel/sources": {
        "axis_map": ("tests/ops/expr_random_test.cpp", "views of expressions"),
    },
    "src/parallel/threads": {
        "arena_tasks": ("tests/parallel/apply_test.cpp", "every parallel call"),
    },
    "src/parallel/ways": {
        "copied_operands": ("tests/parallel/pass_loop_test.cpp", "files against storage order"),
    },
    "src/parallel/windows": {
        "dropped_pages": ("tests/parallel/streaming_test.cpp", "memory that calls leave behind"),
        "page_survey": ("tests/parallel/streaming_test.cpp", "pages that stay in the cache"),
        "streamed_memory": ("tests/parallel/streaming_test.cpp", "operands that are streamed"),
        "window_retirement": ("tests/parallel/streaming_test.cpp", "memory that stays bounded"),
        "window_walk": ("tests/parallel/streaming_test.cpp", "calls larger than the budget"),
    },
    "src/storage/blocks": {
        "heap_block": ("tests/storage/storage_test.cpp", "storage::allocate"),
    },
    "src/storage/faults": {
        "earlier_handlers": ("tests/storage/fault_guard_test.cpp", "handlers of the host program"),
    },
    "src/storage/files": {
        "partial_path": ("tests/storage/mapped_file_test.cpp", "files that are replaced"),
    },
    "src/storage/mapped": {
        "address_reservation": ("tests/storage/mapped_file_test.cpp", "growth of mappings"),
        "mapped_block": ("tests/storage/mapped_file_test.cpp", "every mapping"),
        "mapped_paging": ("tests/storage/mapped_file_test.cpp", "every request to a mapping"),
        "mapped_transfers": ("tests/storage/mapped_transfers_test.cpp", "bytes beside the pages"),
        "mapped_parts": ("tests/storage/mapped_extents_test.cpp", "extents side by side"),
    },
    "src/storage/pool/caches": {
        "cache_exchange": ("tests/storage/memory_pool_test.cpp", "blocks that threads keep and give back"),
    },
    "src/storage/pool/pools": {
        "pool_list": ("tests/storage/fork_test.cpp", "pools of forked children"),
        "own_caches": ("tests/storage/thread_cache_test.cpp", "blocks that threads keep"),
    },
    "src/storage/shared": {
        "shared_segment": ("tests/storage/shared_memory_test.cpp", "every shared segment"),
    },
    "src/tensor": {
        "strided_pair": ("tests/tensor/copy_test.cpp", "how copies walk two layouts"),
        "tensor_views": ("tests/tensor/view_test.cpp", "every view"),
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
    tests = {".".join(test) for test in house.tests}
    tests |= set(re.findall(r"add_test\(NAME (\S+)", "\n".join(map(house.text, house.build_files))))
    for number, line in house.lines("tests/skips.txt"):
        if line.strip() and not line.startswith("#") and \
                not fnmatch.filter(tests, line.split()[0]):
            house.add(f"tests/skips.txt:{number}", f"there is no test {line.split()[0]}")
