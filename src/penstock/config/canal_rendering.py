"""The settings for how canal's clients see an instance's events."""

from typing import Literal

from pydantic import Field, field_validator

from penstock.config.section import Section
from penstock.config.time_zone import resolve_zone_name
from penstock.errors import ConfigurationError


class CanalRendering(Section):
    """What canal's clients get to see of an instance, and when."""

    values: Literal["canal", "penstock"] = Field(
        default="canal",
        description="canal: ENUM and SET as numbers, decimals and reals as canal writes them; penstock: ENUM and SET as"
        " labels, decimals with all their digits",
    )
    waits_for: Literal["entries", "batch"] = Field(
        default="entries",
        description="what a get with a timeout waits for: entries, however few; or as canal does, a whole batch of the"
        " size that it asks for",
    )
    unit: Literal["memory", "items"] = Field(
        default="memory", description="what the size of a batch counts: memory in units of unit_bytes, or entries"
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
        description="time zone in which TIMESTAMP values are written: a name such as Asia/Shanghai, or local for this"
        " machine's, as canal does; local is the default for canal's properties",
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
