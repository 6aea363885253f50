# pyarrow ships no types: everything of it is Any, said here once instead of at each use.
from typing import Any

def __getattr__(name: str) -> Any: ...
