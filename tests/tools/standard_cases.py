"""Reads the cases in the folder `standard`; the files say how they are written."""

import ast
import collections
import itertools
import math
import pathlib
import re

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "standard"

# What a number must be: `value`, with its sign if `kind` is "exact"; of any sign ("size"); within a few ulp
# ("near", "near size"); or anything of the sign of `value` ("sign"). NaN has any sign unless `kind` is "sign".
Wanted = collections.namedtuple("Wanted", "value kind")

# Of one dtype: expressions of x1, x2, x3; the operands, each a list of tuples of parts; the results.
Table = collections.namedtuple("Table", "expressions dtype gives operands wanted")

PARTS = {"complex64": "float32", "complex128": "float64"}

PI = re.compile(r"(-?)(\d*)pi(?:/(\d+))?")


def constant(word, dtype):
    """The number that a word means, None if it means none."""
    if dtype == "bool":
        return {"false": False, "true": True}.get(word)
    negative, name = (True, word[1:]) if word.startswith("-") else (False, word.removeprefix("+"))
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        value = {"max": int(info.max), "min": int(info.min)}.get(name)
        if value is None and name.isdigit():
            value = int(name)
    else:
        info = np.finfo(dtype)
        value = {"max": info.max, "least": info.smallest_subnormal, "smallest": info.smallest_normal,
                 "inf": math.inf, "nan": math.nan}.get(name)
        if value is None and re.fullmatch(r"[\d.]+", name):
            value = float(name)
    if value is None:
        return None
    return -value if negative else value if isinstance(value, int) else float(value)


def of_operands(word, names):
    """The number that a word makes of operands, None if it does not."""
    found = re.fullmatch(r"(-?)(\|?)(\w+)(\|?)(/2)?", word)
    if found is None or found[3] not in names or found[2] != found[4]:
        return None
    value = abs(names[found[3]]) if found[2] else names[found[3]]
    value = value // 2 if found[5] else value
    return -value if found[1] else value


def wanted(word, dtype, names):
    """What a word of a result asks for; `names` are the operands."""
    size, word = word.startswith("~"), word.removeprefix("~")
    if word in ("+", "-"):
        return Wanted(float(word + "1"), "sign")
    if word in ("+nan", "-nan"):
        return Wanted(math.copysign(math.nan, float(word[0] + "1")), "sign")
    turned = re.fullmatch(r"(inf|0)\*(cos|sin)", word)
    if turned:
        return Wanted(math.copysign(float(turned[1]), getattr(math, turned[2])(names["b"])), "exact")
    pi = PI.fullmatch(word)
    if pi:
        value = float(pi[1] + "1") * int(pi[2] or 1) * math.pi / int(pi[3] or 1)
        return Wanted(value, "near size" if size else "near")
    value = of_operands(word, names)
    if value is None:
        value = constant(word, dtype)
    if value is None:
        raise ValueError(f"no value: {word}")
    return Wanted(value, "size" if size else "exact")


def negated(asked):
    return Wanted(-asked.value, asked.kind)


class ElementwiseCases:
    """`tables` are the tables of the file, one for each dtype."""

    HEADER = re.compile(r"(?P<expressions>\S.*?) for (?P<dtypes>[\w ]+?)(?: gives (?P<gives>\w+))?"
                        r"(?: as (?P<source>.+?))?(?P<symmetries>(?: conjugate| odd| even)*)")

    def __init__(self):
        self.values, self.tables, self.current = {}, [], []
        for number, line in enumerate((FOLDER / "elementwise_cases.txt").read_text().splitlines(), 1):
            text = re.sub(r"(^|\s+)#.*", "", line).rstrip()
            try:
                if text.startswith("values "):
                    name, _, words = text.removeprefix("values ").partition(":")
                    self.values[name] = self.listed(words)
                elif text.startswith("  "):
                    self.add_case(text)
                elif text:
                    self.begin_table(text)
            except (ValueError, AttributeError, TypeError) as reason:
                raise ValueError(f"elementwise_cases.txt:{number}: {reason}: {line}") from reason

    def listed(self, words):
        return [value for word in words.split() for value in self.values.get(word, [word])]

    def begin_table(self, text):
        header = self.HEADER.fullmatch(text)
        expressions = header["expressions"].split("; ")
        self.symmetries = header["symmetries"].split()
        self.current = []
        for dtype in header["dtypes"].split():
            gives = PARTS[dtype] if header["gives"] == "real" else header["gives"] or dtype
            table = Table(expressions, dtype, gives, [], [])
            if header["source"]:
                self.derive(table, header["source"])
            else:
                self.current.append(table)
            self.tables.append(table)

    def add_case(self, text):
        left, _, right = text.partition(":")
        for table in self.current:
            part = PARTS.get(table.dtype, table.dtype)
            result_part = PARTS.get(table.gives, table.gives)
            columns = [self.listed(word) for word in left.split()]
            for words in itertools.product(*columns):
                parts = [constant(word, part) for word in words]
                if None in parts:
                    raise ValueError(f"no value: {words[parts.index(None)]}")
                names = dict(zip(("a", "b", "c", "d") if table.dtype in PARTS else ("x1", "x2", "x3"), parts))
                results = [wanted(word, result_part, names) for word in right.split()]
                self.add(table, parts, results)

    def add(self, table, parts, results):
        """Adds a case, and those that follow by symmetry."""
        cases = [(parts, results)]
        if "conjugate" in self.symmetries:
            cases += [([a, -b], [u, negated(v)]) for (a, b), (u, v) in cases]
        if "odd" in self.symmetries:
            cases += [([-a, -b], [negated(u), negated(v)]) for (a, b), (u, v) in cases]
        if "even" in self.symmetries:
            cases += [([-a, -b], [u, v]) for (a, b), (u, v) in cases]
        table.operands.extend(operands for operands, _ in cases)
        table.wanted.extend(asked for _, asked in cases)

    def derive(self, table, source):
        """Fills a table of complex numbers from that of another function."""
        turned = re.fullmatch(r"(-1j \* )?(\w+)\(x \* 1j\)", source)
        scaled = re.fullmatch(r"(\w+)\(x\) / ([\d.]+)", source)
        name = turned[2] if turned else scaled[1]
        other = next(t for t in self.tables if t.expressions[0] == f"{name}(x)" and t.dtype == table.dtype)
        for (a, b), (u, v) in zip(other.operands, other.wanted):
            if turned:
                # (q - p j) 1j = p + q j, and -1j (u + v j) = v - u j.
                table.operands.append([b, -a])
                table.wanted.append([v, negated(u)] if turned[1] else [u, v])
            else:
                table.operands.append([a, b])
                table.wanted.append([Wanted(w.value / float(scaled[2]), w.kind) for w in (u, v)])


# An expression of arrays: what its names are bound to, and its result; `dtype` is None for an error.
ArrayCase = collections.namedtuple("ArrayCase", "line text arrays dtype result")


def array_of(words, dtype):
    """The array that nested lists are; `shape (0, 3)` is an array without elements."""
    if words.startswith("shape "):
        return np.empty(ast.literal_eval(words.removeprefix("shape ")), dtype)
    # The file is one of ours, so what it says can be evaluated.
    values = eval(words, {"nan": math.nan, "inf": math.inf, "true": True, "false": False})
    return np.array(values, dtype)


def array_cases():
    """The cases of the file, once for each dtype that T stands for."""
    cases, arrays, dtypes = [], {}, [""]
    for number, line in enumerate((FOLDER / "array_cases.txt").read_text().splitlines(), 1):
        text = re.sub(r"(^|\s+)#.*", "", line).strip()
        try:
            if not line.strip():
                arrays, dtypes = {}, [""]
            elif not text:
                continue  # a comment
            elif text.startswith("for "):
                dtypes = text.removeprefix("for ").split()
            elif text.startswith("let "):
                _, name, dtype, words = text.split(maxsplit=3)
                arrays = {**arrays, name: (dtype, words)}
            else:
                expression, _, right = text.partition(" -> ")
                for t in dtypes:
                    bound = {name: array_of(words, t if dtype == "T" else dtype)
                             for name, (dtype, words) in arrays.items()}
                    dtype, _, words = right.strip().partition(" ")
                    dtype = None if dtype == "error" else t if dtype == "T" else dtype
                    result = None if dtype is None else array_of(words.strip(), dtype)
                    cases.append(ArrayCase(number, expression.strip(), bound, dtype, result))
        except (ValueError, SyntaxError, NameError, TypeError) as reason:
            raise ValueError(f"array_cases.txt:{number}: {reason}: {line}") from reason
    return cases
