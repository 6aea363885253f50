"""`python -m benchmarks [NAME]`."""

import importlib
import pkgutil
import sys
from pathlib import Path


def names() -> list[str]:
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in found if not module.name.startswith("_"))


def main(arguments: list[str]) -> int:
    chosen = arguments or names()
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        print(f"there is no benchmark '{unknown[0]}'; choose from: {', '.join(names())}", file=sys.stderr)
        return 2
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
