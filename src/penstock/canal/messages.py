"""The messages of canal's protocol as classes of protobuf, from a table of their fields.

A field with a `?` is there even when it is 0 or false, as canal writes it.
"""

from typing import Any

from penstock.errors import MissingExtraError

_PACKAGE = "com.alibaba.otter.canal.protocol"
_ENUMS = {
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
_MESSAGES = {
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


def _classes() -> dict[str, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError.of("canal", "a client of canal's protocol") from None
    kinds: Any = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="penstock/canal.proto", package=_PACKAGE, syntax="proto3")
    for name, values in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            # Values of all enums share one scope.
            enum.value.add(name=value if name in {"EntryType", "EventType"} else f"{name}_{value}", number=number)
    _rename_clashes(file)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for spec in fields.split():
            _add_field(message, spec, kinds)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }


def _rename_clashes(file: Any) -> None:
    seen = set[str]()
    for enum in file.enum_type:
        for value in enum.value:
            if value.name in seen:
                value.name = f"{enum.name}_{value.name}"
            seen.add(value.name)


def _add_field(message: Any, spec: str, kinds: Any) -> None:
    name, _, rest = spec.partition("=")
    number, _, kind = rest.partition(":")
    plain = kind.rstrip("?*")
    label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
    field = message.field.add(name=name, number=int(number), label=label)
    if plain in _MESSAGES or plain in _ENUMS:
        field.type = kinds.TYPE_MESSAGE if plain in _MESSAGES else kinds.TYPE_ENUM
        field.type_name = f".{_PACKAGE}.{plain}"
    else:
        field.type = getattr(kinds, f"TYPE_{plain.upper()}")
    if kind.endswith("?"):
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")


_found = _classes()
Entry: Any = _found["Entry"]
Header: Any = _found["Header"]
Pair: Any = _found["Pair"]
TransactionBegin: Any = _found["TransactionBegin"]
TransactionEnd: Any = _found["TransactionEnd"]
RowChange: Any = _found["RowChange"]
RowData: Any = _found["RowData"]
Column: Any = _found["Column"]
Packet: Any = _found["Packet"]
Handshake: Any = _found["Handshake"]
ClientAuth: Any = _found["ClientAuth"]
Ack: Any = _found["Ack"]
Sub: Any = _found["Sub"]
Unsub: Any = _found["Unsub"]
Get: Any = _found["Get"]
Messages: Any = _found["Messages"]
ClientAck: Any = _found["ClientAck"]
ClientRollback: Any = _found["ClientRollback"]
