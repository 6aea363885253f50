"""python -m penstock.binlog.compile: compile all kernels into the disk cache, so that no later process has to."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import penstock
from penstock.binlog.kernel import Kernel

_ROOMS = ("binlog", "source", "snapshot", "inspect", "render")


def find_kernels() -> list[Kernel]:
    """Return all kernels of the package, module by module."""
    kernels: list[Kernel] = []
    for room in _ROOMS:
        package = importlib.import_module(f"{penstock.__name__}.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith((".compile", ".intrinsics")):
                kernels += _kernels_in(importlib.import_module(module.name))
    return kernels


def _kernels_in(module: ModuleType) -> list[Kernel]:
    """Return the kernels that a module defines."""
    values: list[Any] = list(vars(module).values())
    for value in [*values]:
        values += value.values() if isinstance(value, dict) else ()  # type: ignore[reportUnknownArgumentType]
    return [member for member in values if isinstance(member, Kernel) and member.__module__ == module.__name__]


if __name__ == "__main__":
    for kernel in find_kernels():
        _ = kernel.compiled
