"""What the index remembers from call to call: cells by name, the GTID at hand, tags and tables seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.known_tables import KnownTables

# Cells of `slots`. Plain numbers, because kernels use them.
POSITION = 0  # file offset of the next event
TRANSACTION = 1  # file offset of the current transaction's first event, -1 between two
COMMIT_US = 2
IN_TRANSACTION = 3  # a BEGIN was seen: statements belong to it
CHECKSUM_BYTES = 4  # at the end of each event
VERIFY = 5
ORDINAL = 6  # rows events seen in the transaction
TAGS = 7  # tags seen
LENIENT = 8  # incidents are events like others
ALERT = 9  # every event is for Python: a fragment of one is open
# Expanded events: the event that held them, and where the buffer lies in what it held.
FRAME_AT = 10
FRAME_SPAN = 11
FRAME_TOTAL = 12  # bytes of the expanded events; 0 outside
FRAME_SHIFT = 13
SEAL = 14  # a checksum over those of the events in the block to come; -1 once one had none, or was not verified
ENTRY_SEAL = 15  # the same, up to the last entry or boundary
BY_BYTES = 16  # events lie where their bytes are; what their headers say is a position in another log
_SLOTS = 17
_NO_SEAL = 0xFFFFFFFF

# A GTID: flavour 1 | MySQL: uuid 16, MariaDB: domain 4, server of origin 4 | number 8
GTID_BYTES = 25
UUID_AT, UUID_BYTES = 1, 16
DOMAIN_AT, ORIGIN_AT = 1, 5
NUMBER_AT = 17
NO_GTID, MYSQL, MARIADB, TAGGED = range(4)  # flavours; from TAGGED on, the difference is the tag's number

MOST_TAGS = 252  # as many as a byte can tell apart; beyond that the reader begins anew with them
TAG_BYTES = 33  # length 1, text


@dataclass(slots=True)
class IndexState:
    slots: NDArray[np.int64]
    gtid: NDArray[np.uint8]
    tags: NDArray[np.uint8]
    known: KnownTables

    @classmethod
    def start(cls, *, verify: bool = True, lenient: bool = False) -> "IndexState":
        slots = np.zeros(_SLOTS, np.int64)
        slots[TRANSACTION] = -1
        slots[VERIFY] = verify
        slots[LENIENT] = lenient
        slots[SEAL] = slots[ENTRY_SEAL] = _NO_SEAL
        tags = np.zeros((MOST_TAGS, TAG_BYTES), np.uint8)
        return cls(slots, np.zeros(GTID_BYTES, np.uint8), tags, KnownTables())

    def seek(self, offset: int) -> None:
        """The next event begins at `offset`, between two transactions."""
        self.slots[POSITION] = offset
        self.slots[TRANSACTION] = -1
        self.slots[IN_TRANSACTION] = 0
        self.gtid[:] = 0

    def take_seal(self, *, up_to_entry: bool = False) -> int | None:
        """Return the checksum over the events since the last call, as `seal_of` gives it."""
        seal = int(self.slots[ENTRY_SEAL if up_to_entry else SEAL])
        self.slots[SEAL] = self.slots[ENTRY_SEAL] = _NO_SEAL
        return seal ^ _NO_SEAL if seal >= 0 else None

    def give_seal(self, seal: int | None) -> None:
        """Set the checksum of events that count among the next; None when they have none."""
        self.slots[SEAL] = -1 if seal is None else seal ^ _NO_SEAL

    @property
    def tag_names(self) -> tuple[str, ...]:
        return tuple(tag[1 : 1 + tag[0]].tobytes().decode("ascii", "replace") for tag in self.tags[: self.slots[TAGS]])

    def forget_tags(self) -> None:
        """GTIDs that were indexed before need the names that were there before."""
        self.slots[TAGS] = 0
