"""Which floor of the house includes which."""

import pathlib

from house import CODE

FLOORS = {
    "core": [],
    "storage": ["core"],
    "tensor": ["storage", "core"],
    "parallel": ["tensor", "storage", "core"],
    "ops": ["parallel", "tensor", "storage", "core"],
    "format": ["storage", "core"],
    "array": ["format", "ops", "parallel", "tensor", "storage", "core"],
    "interop": ["array", "format", "ops", "parallel", "tensor", "storage", "core"],
}

# The floor of each public header: the floor whose source implements it.
HEADERS = {
    "core": "convert dims dtype error index layout logical_dtype region scalar slice small_floats",
    "storage": "access existing_file mapped_file memory_pool shared_memory storage",
    "tensor": "index_entry print tensor view",
    "parallel": "apply apply_operands executor fold_axes for_each halo map_tiles reduce tile_source",
    "ops": "creation decompositions distances einsum elementwise evaluate expr functions gradient histograms least_squares linalg linear_systems low_rank manipulation masks matrix_functions matrix_updates ops order_statistics padding random reductions rolling scans scatter searching sorting spectra statistics take tall_qr tensor_products windows",
    "format": "attribute_value level_entry space_report stored_chunk verification",
    "array": "array array_spec codec_choice container coordinates dimension_names logical_arrays pending_commit rechunk snapshot transaction version writable_array",
    "interop": "npy npz raw t7 unfinished_file",
}
FLOOR_OF_HEADER = {f"include/shale/{name}.hpp": floor
                   for floor, names in HEADERS.items() for name in names.split()}
UMBRELLA = "include/shale/shale.hpp"

# The rooms inside a floor or inside a room, lowest first: folders, and "." for what lies in none. A file
# includes from its own room and from those before it; rooms that still use each other stand in one string.
ROOMS = {
    "src/array": ["specification", "elements", "transaction", "handles"],
    "src/array/transaction": ["state", "changes", "."],
    "src/format": ["bytes", "os", "codec", "pages", "space", "catalog", "chunks", "generations",
                   "transaction", "container"],
    "src/interop": [".", "t7"],
    "src/ops": ["kernels", "linalg", "passes", "graph", "leaves", "evaluation", "sorting", "functions"],
    "src/ops/functions": ["expressions", "operands", "indexing", "ordering", "linear_algebra", "random"],
    "src/ops/kernels": ["operations", "strided", "dispatch", "elementwise", "elementary", "folds", "random",
                          "windows"],
    "src/parallel": ["threads", "executor", "plan", "blocks", "sources", "mapped", "windows", "fold",
                     "operands", "kept", "stores", "ways", "pass"],
    "src/storage": ["system", "pool", "blocks", "files", "faults", "mapped", "shared"],
    "src/storage/pool": ["heap", "caches", "pools"],
    "tools": ["terminal", "notation", "language", "picture", "data", "doctor", "commands"],
    "tools/language": ["tokens", "values", "functions", "parsing"],
    "tools/doctor": ["system", "facts", "verdicts"],
}


def floor_of(name):
    """The floor that a file of include or src is on; None for others and for the umbrella."""
    parts = pathlib.PurePosixPath(name).parts
    if parts[0] == "src" and parts[1] in FLOORS:
        return parts[1]
    return FLOOR_OF_HEADER.get(name)


def room_of(name, folder):
    """The room that a file of the folder is in."""
    parts = pathlib.PurePosixPath(name).relative_to(folder).parts
    return parts[0] if len(parts) > 1 else "."


def check_rooms(house, folder):
    """Nobody includes from a room above their own."""
    levels = ROOMS.get(folder, ["."])
    level_of = {room: level for level, rooms in enumerate(levels) for room in rooms.split()}
    used = {"."}
    for name in house.under(folder, suffixes=CODE):
        room = room_of(name, folder)
        used.add(room)
        if room not in level_of:
            house.add(name, f"is in no room: name {room} among those of {folder} in "
                            "tests/tidy/floors.py")
            continue
        for number, target, file in house.includes(name):
            if file is None or not file.startswith(f"{folder}/"):
                continue
            other = room_of(file, folder)
            if level_of.get(other, 0) > level_of[room]:
                house.add(f"{name}:{number}", f"room {room} may not include {target} of room {other}, "
                                              "which comes after it")
    for room in level_of.keys() - used:
        house.add("tests/tidy/floors.py", f"names a room without files: {folder}/{room}")


def check_floors(house):
    """Nobody includes from a floor or a room above their own; others see public headers only."""
    for folder in dict.fromkeys((*(f"src/{floor}" for floor in FLOORS), *ROOMS)):
        check_rooms(house, folder)
    for name in house.under("include"):
        if name not in FLOOR_OF_HEADER and name != UMBRELLA:
            house.add(name, "belongs to no floor: name it in tests/tidy/floors.py")
    for name in FLOOR_OF_HEADER:
        if not house.has(name):
            house.add("tests/tidy/floors.py", f"names a header that does not exist: {name}")
    for name in house.under("src"):
        if floor_of(name) is None:
            house.add(name, "is on no floor: name its folder in tests/tidy/floors.py")

    for name in house.under("include", "src", suffixes=CODE):
        floor = floor_of(name)
        if floor is None:
            continue
        for number, target, file in house.includes(name):
            if file is None:
                continue
            if file == UMBRELLA:
                house.add(f"{name}:{number}", f"{floor} may not include {target} of every floor")
            elif name.startswith("include/") and not file.startswith("include/"):
                house.add(f"{name}:{number}", f"a public header may not include {target}")
            elif not file.startswith(("include/", "src/")):
                house.add(f"{name}:{number}", f"{floor} may not include {file}")
            elif floor_of(file) not in (floor, *FLOORS[floor]):
                house.add(f"{name}:{number}",
                          f"{floor} may not include {target} of {floor_of(file)}")
    for folder in ("tools", "examples", "bench"):
        for name in house.under(folder, suffixes=CODE):
            for number, target, file in house.includes(name):
                if file is not None and not file.startswith((f"{folder}/", "include/")):
                    house.add(f"{name}:{number}",
                              f"{folder} may include public headers only, not {target}")
