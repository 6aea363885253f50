from typing import Any

exceptions: Any
