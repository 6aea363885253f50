"""The messages of canal's protocol, declared as data: names, numbers and kinds of their fields.

One line per message, `name=number:kind`. A kind with `?` is written even when it is 0 or false, as canal does; one with
`*` is repeated. This table is the only place with field numbers: protobuf's classes (messages.py), our own structures
(structures.py) and the kernels that write entries (render/canal) are all made of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PACKAGE = "com.alibaba.otter.canal.protocol"
ENUMS = {
    "EntryType": ("ENTRYTYPECOMPATIBLEPROTO2", "TRANSACTIONBEGIN", "ROWDATA", "TRANSACTIONEND", "HEARTBEAT", "GTIDLOG"),
    "EventType": (
        "EVENTTYPECOMPATIBLEPROTO2", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE",
        "RENAME", "CINDEX", "DINDEX", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT",
    ),
    "Type": ("TYPECOMPATIBLEPROTO2", "ORACLE", "MYSQL", "PGSQL"),
    "PacketType": (
        "PACKAGETYPECOMPATIBLEPROTO2", "HANDSHAKE", "CLIENTAUTHENTICATION", "ACK", "SUBSCRIPTION", "UNSUBSCRIPTION",
        "GET", "MESSAGES", "CLIENTACK", "SHUTDOWN", "DUMP", "HEARTBEAT", "CLIENTROLLBACK",
    ),
    "Compression": ("COMPRESSIONCOMPATIBLEPROTO2", "NONE", "ZLIB", "GZIP", "LZF"),
}  # fmt: skip
# Of the port of its clients.
MESSAGES = {
    "Entry": "header=1:Header entryType=2:EntryType? storeValue=3:bytes",
    "Header": "version=1:int32? logfileName=2:string logfileOffset=3:int64 serverId=4:int64 serverenCode=5:string"
    " executeTime=6:int64 sourceType=7:Type? schemaName=8:string tableName=9:string eventLength=10:int64"
    " eventType=11:EventType? props=12:Pair* gtid=13:string",
    "Pair": "key=1:string value=2:string",
    "TransactionBegin": "executeTime=1:int64 transactionId=2:string props=3:Pair* threadId=4:int64",
    "TransactionEnd": "executeTime=1:int64 transactionId=2:string props=3:Pair*",
    "RowChange": "tableId=1:int64 eventType=2:EventType? isDdl=10:bool? sql=11:string rowDatas=12:RowData*"
    " props=13:Pair* ddlSchemaName=14:string",
    "RowData": "beforeColumns=1:Column* afterColumns=2:Column* props=3:Pair*",
    "Column": "index=1:int32 sqlType=2:int32 name=3:string isKey=4:bool updated=5:bool isNull=6:bool? props=7:Pair*"
    " value=8:string length=9:int32 mysqlType=10:string",
    "Packet": "magic_number=1:int32? version=2:int32? type=3:PacketType compression=4:Compression? body=5:bytes",
    "Handshake": "communication_encoding=1:string? seeds=2:bytes supported_compressions=3:Compression",
    "ClientAuth": "username=1:string password=2:bytes net_read_timeout=3:int32? net_write_timeout=4:int32?"
    " destination=5:string client_id=6:string filter=7:string start_timestamp=8:int64",
    "Ack": "error_code=1:int32? error_message=2:string",
    "Sub": "destination=1:string client_id=2:string filter=7:string",
    "Unsub": "destination=1:string client_id=2:string filter=7:string",
    "Get": "destination=1:string client_id=2:string fetch_size=3:int32 timeout=4:int64? unit=5:int32? auto_ack=6:bool?"
    " at_once=100:bool",
    "Messages": "batch_id=1:int64 messages=2:bytes*",
    "ClientAck": "destination=1:string client_id=2:string batch_id=3:int64",
    "ClientRollback": "destination=1:string client_id=2:string batch_id=3:int64",
}
# Of the port of its console, which has a packet of its own.
ADMIN_MESSAGES = {
    "AdminPacket": "magic_number=1:int32? version=2:int32? type=3:int32 body=4:bytes",
    "ServerAdmin": "admin=1:string",
    "InstanceAdmin": "destination=1:string admin=2:string",
    "LogAdmin": "type=1:string admin=2:string destination=3:string file=4:string count=5:int32",
}


_VARINT, _BYTES = 0, 2  # what follows a tag: a varint, or a length and bytes
_VARINT_KINDS = {"int32", "int64", "bool", *ENUMS}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a message: its name, its number, and its kind without `?` and `*`."""

    name: str
    number: int
    kind: str
    is_optional: bool = False
    is_repeated: bool = False

    @classmethod
    def parse(cls, text: str) -> "FieldSpec":
        """Return the field that a word of the table declares."""
        name, _, rest = text.partition("=")
        number, _, kind = rest.partition(":")
        return cls(name, int(number), kind.rstrip("?*"), kind.endswith("?"), kind.endswith("*"))

    @property
    def tag(self) -> int:
        """Return the tag that stands before the field in a message: its number and its form."""
        return self.number << 3 | (_VARINT if self.kind in _VARINT_KINDS else _BYTES)


FIELDS: Mapping[str, Mapping[str, FieldSpec]] = {
    message: {spec.name: spec for spec in map(FieldSpec.parse, fields.split())}
    for message, fields in (MESSAGES | ADMIN_MESSAGES).items()
}


def number_of(message: str, field: str) -> int:
    """Return the number of a field, for the functions of protobuf.py."""
    return FIELDS[message][field].number


def tag_of(message: str, field: str) -> int:
    """Return the tag of a field, as a kernel writes it: one byte, which is enough for numbers up to 15."""
    return FIELDS[message][field].tag
