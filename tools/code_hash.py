"""A hash of the code behind a stored result, and of all the project's code that it uses."""

import ast
import hashlib

from lessons import NOTEBOOKS, ROOT

TOOLS = ROOT / "tools"
# Groups of modules that make runs together, some with those of their names that count; within a
# group no name is defined twice.
GROUPS = [
    [NOTEBOOKS / "grammar.py", NOTEBOOKS / "seq2seq.py", TOOLS / "sweep.py"],
    [NOTEBOOKS / "digits.py", NOTEBOOKS / "reader.py", TOOLS / "ablation.py"],
    [NOTEBOOKS / "digits.py", NOTEBOOKS / "reader.py", TOOLS / "measure.py"],
    [
        (NOTEBOOKS / "reader.py", {"Residual", "feed_forward"}),
        *(NOTEBOOKS / f"{name}.py" for name in ("grammar", "seq2seq", "transformer")),
        TOOLS / "recurrence.py",
    ],
    [
        (NOTEBOOKS / "reader.py", {"Residual", "feed_forward"}),
        *(NOTEBOOKS / f"{name}.py" for name in ("seq2seq", "transformer")),
        TOOLS / "writing.py",
    ],
    [
        *(NOTEBOOKS / f"{name}.py" for name in ("digits", "reader", "pixels")),
        TOOLS / "pixel_bottleneck.py",
    ],
]
DOCUMENTED = (ast.FunctionDef, ast.ClassDef)


def names(node):
    """The names that a statement at the top level of a module defines, or imports under them."""
    if isinstance(node, DOCUMENTED):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname for alias in node.names if alias.asname]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def definitions(modules):
    """{name: node} of all functions, classes and constants at the top level of the modules.

    Raises ValueError for a name that two of them define.
    """
    found = {}
    for module in modules:
        path, chosen = module if isinstance(module, tuple) else (module, None)
        for node in ast.parse(path.read_text("utf-8")).body:
            for name in names(node):
                if chosen is not None and name not in chosen:
                    continue
                if name in found:
                    raise ValueError(
                        f"{path.name} defines {name} a second time: rename one of them"
                    )
                found[name] = node
    return found


def content(node):
    """A node as nested tuples, without docstrings and places, the same in all Pythons."""
    if isinstance(node, list):
        return [content(item) for item in node]
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
        fields["body"] = node.body[1:]
    filled = {name: value for name, value in fields.items() if value not in (None, [])}
    return type(node).__name__, *((name, content(value)) for name, value in filled.items())


def mentioned(tree):
    """The set of names in a piece of code, also those of attributes and imports."""
    fields = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name"}
    return {getattr(node, fields[type(node)]) for node in ast.walk(tree) if type(node) in fields}


def code_hash(function, *others):
    """SHA-256 of the definitions of these names and of every definition that they lead to.

    They are looked up in the group of modules that defines the function. Comments, docstrings and
    layout do not count. A name counts wherever it is mentioned, also as an attribute, so that a
    hash may change too often but not too seldom.
    """
    known = next(found for found in map(definitions, GROUPS) if function in found)
    used, waiting = {}, [function, *others]
    while waiting:
        name = waiting.pop()
        if name in known and name not in used:
            used[name] = content(known[name])
            waiting += mentioned(known[name])
    return hashlib.sha256(repr(sorted(used.items())).encode()).hexdigest()
