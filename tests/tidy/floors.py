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
    "core": "convert dims dtype error index layout region scalar slice small_floats",
    "storage": "mapped_file memory_pool shared_memory storage",
    "tensor": "index_entry print tensor view",
    "parallel": "apply apply_operands executor for_each reduce tile_source",
    "ops": "evaluate expr linalg ops",
    "array": "array container version",
    "interop": "foreign_file npy npz raw",
}
FLOOR_OF_HEADER = {f"include/shale/{name}.hpp": floor
                   for floor, names in HEADERS.items() for name in names.split()}
UMBRELLA = "include/shale/shale.hpp"


def floor_of(name):
    """The floor that a file of include or src is on; None for others and for the umbrella."""
    parts = pathlib.PurePosixPath(name).parts
    if parts[0] == "src" and parts[1] in FLOORS:
        return parts[1]
    return FLOOR_OF_HEADER.get(name)


def check_floors(house):
    """Nobody includes from a floor above their own; others see public headers only."""
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
