"""The state of the index kernel from call to call: named slots, the GTID at hand, tags and tables seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.known_tables import KnownTables

# Indexes of `slots`. Plain numbers, because kernels use them.
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
BLOCK_CHECKSUM = (
    14  # a checksum over those of the events in the block to come; -1 once one had none, or was not verified
)
ENTRY_CHECKSUM = 15  # the same, up to the last entry or boundary
BY_BYTES = 16  # events lie where their bytes are; what their headers say is a position in another log
_SLOTS = 17
_EMPTY_CHECKSUM = 0xFFFFFFFF

# A GTID: flavour 1 | MySQL: uuid 16, MariaDB: domain 4, server of origin 4 | number 8
GTID_BYTES = 25
UUID_AT, UUID_BYTES = 1, 16
DOMAIN_AT, ORIGIN_AT = 1, 5
NUMBER_AT = 17
NO_GTID, MYSQL, MARIADB, TAGGED = range(4)  # flavours; from TAGGED on, the difference is the tag's number

MAX_TAGS = 252  # as many as a byte can tell apart; beyond that the reader numbers them from 0 again
TAG_BYTES = 33  # length 1, text


@dataclass(slots=True)
class IndexState:
    """What the index kernel carries from call to call: named slots, the GTID of the transaction, tags and known
    tables."""

    slots: NDArray[np.int64]
    gtid: NDArray[np.uint8]
    tags: NDArray[np.uint8]
    known: KnownTables

    @classmethod
    def start(cls, *, verify: bool = True, lenient: bool = False) -> "IndexState":
        """Return the state with which a log is read from its start."""
        slots = np.zeros(_SLOTS, np.int64)
        slots[TRANSACTION] = -1
        slots[VERIFY] = verify
        slots[LENIENT] = lenient
        slots[BLOCK_CHECKSUM] = slots[ENTRY_CHECKSUM] = _EMPTY_CHECKSUM
        tags = np.zeros((MAX_TAGS, TAG_BYTES), np.uint8)
        return cls(slots, np.zeros(GTID_BYTES, np.uint8), tags, KnownTables())

    def seek(self, offset: int) -> None:
        """Continue at a file offset, between two transactions."""
        self.slots[POSITION] = offset
        self.slots[TRANSACTION] = -1
        self.slots[IN_TRANSACTION] = 0
        self.gtid[:] = 0

    def take_block_checksum(self, *, up_to_entry: bool = False) -> int | None:
        """Return the checksum over the events since the last call, as the function `block_checksum` computes it."""
        checksum = int(self.slots[ENTRY_CHECKSUM if up_to_entry else BLOCK_CHECKSUM])
        self.slots[BLOCK_CHECKSUM] = self.slots[ENTRY_CHECKSUM] = _EMPTY_CHECKSUM
        return checksum ^ _EMPTY_CHECKSUM if checksum >= 0 else None

    def set_block_checksum(self, checksum: int | None) -> None:
        """Set the checksum of events that count among the next; None when they have none."""
        self.slots[BLOCK_CHECKSUM] = -1 if checksum is None else checksum ^ _EMPTY_CHECKSUM

    @property
    def tag_names(self) -> tuple[str, ...]:
        """The names of the GTID tags that were seen, by their numbers."""
        return tuple(tag[1 : 1 + tag[0]].tobytes().decode("ascii", "replace") for tag in self.tags[: self.slots[TAGS]])

    def forget_tags(self) -> None:
        """Number the tags from 0 again; GTIDs that were indexed before need the names from before."""
        self.slots[TAGS] = 0
