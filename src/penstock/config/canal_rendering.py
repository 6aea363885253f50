"""The settings for how canal's clients see an instance's events."""

from typing import Literal

from pydantic import Field, field_validator

from penstock.config.section import Section
from penstock.config.time_zone import resolve_zone_name
from penstock.errors import ConfigurationError


class CanalRendering(Section):
    """What canal's clients get to see of an instance, and when.

    rendering = CanalRendering(values="penstock", unit="items")
    """

    values: Literal["canal", "penstock"] = Field(
        default="canal",
        description="how values are written as text. canal: ENUM and SET as numbers, decimals and reals as canal"
        " writes them; penstock: ENUM and SET as labels, decimals with all their digits",
    )
    waits_for: Literal["entries", "batch"] = Field(
        default="entries",
        description="what a get with a timeout waits for. entries: any entries, however few; batch: a whole batch of"
        " the requested size, as canal does",
    )
    unit: Literal["memory", "items"] = Field(
        default="memory", description="what the batch size of a get counts. memory: units of unit_bytes; items: entries"
    )
    unit_bytes: int = Field(
        default=1024,
        ge=1,
        description="with unit: memory, the size of a batch counts units of this many bytes (canal's"
        " memory.buffer.memunit)",
    )
    ddl_alone: bool = Field(default=False, description="deliver each DDL statement as a batch of its own")
    gtids: bool = Field(
        default=False, description="add the GTID, and the set of all GTIDs before it, to each entry (canal's gtidon)"
    )
    transactions: bool = Field(
        default=True, description="deliver TRANSACTIONBEGIN and TRANSACTIONEND entries, as canal does"
    )
    time_zone: str = Field(
        default="UTC",
        description="time zone in which TIMESTAMP values are written: a name such as Asia/Shanghai, or local for the"
        " time zone of the machine that Penstock runs on, as canal does. Instances configured by canal's properties"
        " have local as their default",
    )

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, text: str) -> str:
        """Raise ValueError for a time zone that does not exist."""
        try:
            resolve_zone_name(text)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        return text
