"""The imports of the whole house as a graph, built once; those for type checkers are apart."""

from __future__ import annotations

from functools import cache

import grimp

from tests.house.tree import PACKAGES


@cache
def import_graph(with_types: bool = False) -> grimp.ImportGraph:
    """Modules of the three packages, and each external package as one module; copy it before you change it."""
    return grimp.build_graph(
        *PACKAGES, include_external_packages=True, exclude_type_checking_imports=not with_types, cache_dir=None
    )


def own_imports() -> dict[str, set[str]]:
    """For each module of the three packages, the ones of them that it imports, for type checkers too."""
    graph = import_graph(with_types=True)
    own = {module for module in graph.modules if module.partition(".")[0] in PACKAGES}
    return {module: graph.find_modules_directly_imported_by(module) & own for module in own}
