from typing import Any

binding: Any
ir: Any
