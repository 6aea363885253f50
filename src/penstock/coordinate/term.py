"""What the winner of an election leaves for the next: who it was, and whether it has released the destination."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One won election, as it is stored at …/term: the number of its epoch, and the server and session that won it."""

    epoch: int
    address: str
    session_id: int
    is_released: bool = False

    def to_bytes(self) -> bytes:
        """Return the term as the JSON of its node."""
        fields = {"epoch": self.epoch, "address": self.address, "session": hex(self.session_id)}
        return json.dumps(fields | {"released": self.is_released}, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Term | None":
        """Return the term of a node; None when its value cannot be read."""
        try:
            fields = json.loads(raw)
            session_id = int(fields["session"], 16)
            return cls(int(fields["epoch"]), str(fields["address"]), session_id, bool(fields.get("released")))
        except (ValueError, TypeError, KeyError):
            return None
