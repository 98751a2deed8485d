#!/usr/bin/python3
"""Whether the Python that tests compare with is there: imports every module that a script or a test
of the tree names, prints versions, and computes with NumPy what is known without it."""

import argparse
import ast
import importlib
import pathlib
import re
import struct
import sys
import unittest


def modules(root):
    """Module: a file that imports it; of Python files, and of the Python in C++ string literals."""
    found, own = {}, set()
    for folder in ("tests", "script"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix == ".py" and path.name != "oracles.py":
                own.add(path.stem)
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.Import):
                        names = [alias.name for alias in node.names]
                    elif isinstance(node, ast.ImportFrom):
                        names = [node.module]
                    else:
                        continue
                    for name in names:
                        found.setdefault(name.split(".")[0], path)
            elif path.suffix in (".cpp", ".hpp"):
                for name in re.findall(r'"(?:import|from) (\w+)', path.read_text()):
                    found.setdefault(name, path)
    return {name: path for name, path in found.items()
            if name not in own and name not in sys.stdlib_module_names}


class Oracles(unittest.TestCase):
    root = None

    def test_every_module_is_there(self):
        found = modules(self.root)
        self.assertIn("numpy", found)
        for name, path in sorted(found.items()):
            module = importlib.import_module(name)
            version = getattr(module, "__version__", "of no version")
            print(f"{name} {version} ({module.__file__}), for {path}")

    def test_numpy_computes(self):
        import numpy as np
        self.assertEqual(int(np.arange(1, 101).sum()), 5050)
        self.assertEqual(np.float32(0.1).tobytes(), struct.pack("<f", 0.1))
        self.assertEqual(np.arange(6).reshape(2, 3).T[::-1].tolist(), [[2, 5], [1, 4], [0, 3]])

    def test_numpy_brings_its_accuracy_sets(self):
        import numpy as np
        sets = list(pathlib.Path(np.__file__).parent.glob("*core/tests/data/umath-validation-set-*.csv"))
        self.assertGreaterEqual(len(sets), 20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    Oracles.root = parser.parse_args().root
    print(f"python {sys.version.split()[0]} ({sys.executable})")
    unittest.main(argv=[sys.argv[0]], verbosity=2)
