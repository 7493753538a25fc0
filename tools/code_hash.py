"""A hash of the code behind a stored result, and of all the project's code that it uses."""

import ast
import hashlib

from lessons import NOTEBOOKS, ROOT

MODULES = [NOTEBOOKS / "grammar.py", NOTEBOOKS / "seq2seq.py", ROOT / "tools" / "sweep.py"]
DOCUMENTED = (ast.FunctionDef, ast.ClassDef)


def definitions():
    """{name: node} of all functions, classes and constants at the top level of the modules."""
    found = {}
    for path in MODULES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, DOCUMENTED):
                found[node.name] = node
            elif isinstance(node, ast.Assign):
                found.update({ast.unparse(target): node for target in node.targets})
    return found


def without_docstrings(node):
    for inner in ast.walk(node):
        if isinstance(inner, DOCUMENTED) and ast.get_docstring(inner) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]
    return ast.unparse(node)


def code_hash(*names):
    """SHA-256 of the definitions of these names and of every definition that they lead to.

    Comments, docstrings and layout do not count. A name counts wherever it is mentioned, also as
    an attribute, so that a hash may change too often but not too seldom.
    """
    known = definitions()
    used, waiting = {}, list(names)
    while waiting:
        name = waiting.pop()
        if name in known and name not in used:
            used[name] = without_docstrings(known[name])
            for node in ast.walk(known[name]):
                if isinstance(node, ast.Name):
                    waiting.append(node.id)
                elif isinstance(node, ast.Attribute):
                    waiting.append(node.attr)
    return hashlib.sha256("\n".join(f"{n}: {used[n]}" for n in sorted(used)).encode()).hexdigest()
