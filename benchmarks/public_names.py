"""Counts the public names of amago's modules, and lists those that only their module uses.

    python benchmarks/public_names.py [COMMIT …]      counts; without commits, of this tree
    python benchmarks/public_names.py --own [FOLDER]  names that no other module uses

A public name is a function, class or constant at the top level of a module that does not start
with an underscore. Modules are those of `amago/`: a name that only tests, benchmarks or docs use is
listed, and so are names that are found by reflection (verbs, figures, views, domains).
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READERS = (".py", ".md", ".toml", ".yaml", ".yml")


def public_names(source: str) -> list[str]:
    """The public names that a module defines at its top level."""
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def files_of(commit: str | None) -> dict[str, str]:
    """Path → text of all files that may mention a name; None is the working tree."""
    command = ["git", "-C", str(ROOT)]
    command += ["ls-files"] if commit is None else ["ls-tree", "-r", "--name-only", commit]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    paths = [path for path in listed if path.endswith(READERS)]
    if commit is None:
        return {path: (ROOT / path).read_text() for path in paths if (ROOT / path).is_file()}
    return {
        path: subprocess.run(
            ["git", "-C", str(ROOT), "show", f"{commit}:{path}"],
            check=True, capture_output=True, text=True,
        ).stdout
        for path in paths if path.startswith("amago/") and path.endswith(".py")
    }  # fmt: skip


def modules(files: Mapping[str, str]) -> dict[str, list[str]]:
    """Module → its public names."""
    return {
        path: public_names(text)
        for path, text in files.items()
        if path.startswith("amago/") and path.endswith(".py")
    }


def own_names(files: Mapping[str, str]) -> dict[str, list[str]]:
    """Module → the public names that no other module of amago imports or reads."""
    names = modules(files)
    dotted = {_dotted(path): path for path in names}
    used: set[tuple[str, str]] = set()
    for path in names:
        used |= _names_used(ast.parse(files[path]), dotted)
    return {
        path: own for path, names in names.items()
        if (own := [name for name in names if (_dotted(path), name) not in used])
    }  # fmt: skip


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _names_used(tree: ast.Module, known: Mapping[str, str]) -> set[tuple[str, str]]:
    """(module, name) of all names that a module imports, or reads of modules that it imports."""
    aliases: dict[str, str] = {}
    used: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if module in known:
                    aliases[alias.asname or alias.name] = module
                else:
                    used.add((node.module, alias.name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.add((aliases.get(node.value.id, ""), node.attr))
    return used


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commits", nargs="*")
    parser.add_argument("--own", nargs="?", const="amago", help="list names used by nobody else")
    arguments = parser.parse_args()
    if arguments.own:
        for path, names in own_names(files_of(None)).items():
            if path.startswith(arguments.own):
                print(f"{path}: {', '.join(names)}")
        return
    for commit in arguments.commits or [None]:
        found = modules(files_of(commit))
        names = [name for own in found.values() for name in own]
        constants = sum(name.isupper() for name in names)
        print(
            f"{commit or 'tree'}: {len(names) - constants} public functions, classes and types and "
            f"{constants} constants in {len(found)} modules"
        )


if __name__ == "__main__":
    main()
