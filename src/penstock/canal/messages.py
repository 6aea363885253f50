"""The messages of canal's protocol as classes of the protobuf library, made of the table in schema.py."""

from typing import Any

from penstock.canal.schema import ENUMS, FIELDS, MESSAGES, PACKAGE, FieldSpec
from penstock.errors import MissingExtraError


def _build_classes() -> dict[str, Any]:
    """Build a protobuf class for each message of schema.py."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError.for_extra("canal", "a client of canal's protocol") from None
    kinds: Any = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="penstock/canal.proto", package=PACKAGE, syntax="proto3")
    for name, values in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            # Values of all enums share one scope.
            enum.value.add(name=value if name in {"EntryType", "EventType"} else f"{name}_{value}", number=number)
    _rename_clashing_values(file)
    for name in MESSAGES:
        message = file.message_type.add(name=name)
        for spec in FIELDS[name].values():
            _add_field(message, spec, kinds)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in MESSAGES}


def _rename_clashing_values(file: Any) -> None:
    """Rename enum values whose names clash within the file."""
    seen = set[str]()
    for enum in file.enum_type:
        for value in enum.value:
            if value.name in seen:
                value.name = f"{enum.name}_{value.name}"
            seen.add(value.name)


def _add_field(message: Any, spec: FieldSpec, kinds: Any) -> None:
    """Add a field to a message descriptor."""
    label = kinds.LABEL_REPEATED if spec.is_repeated else kinds.LABEL_OPTIONAL
    field = message.field.add(name=spec.name, number=spec.number, label=label)
    if spec.kind in MESSAGES or spec.kind in ENUMS:
        field.type = kinds.TYPE_MESSAGE if spec.kind in MESSAGES else kinds.TYPE_ENUM
        field.type_name = f".{PACKAGE}.{spec.kind}"
    else:
        field.type = getattr(kinds, f"TYPE_{spec.kind.upper()}")
    if spec.is_optional:
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{spec.name}")


_by_name = _build_classes()
Entry: Any = _by_name["Entry"]
Header: Any = _by_name["Header"]
Pair: Any = _by_name["Pair"]
TransactionBegin: Any = _by_name["TransactionBegin"]
TransactionEnd: Any = _by_name["TransactionEnd"]
RowChange: Any = _by_name["RowChange"]
RowData: Any = _by_name["RowData"]
Column: Any = _by_name["Column"]
Packet: Any = _by_name["Packet"]
Handshake: Any = _by_name["Handshake"]
ClientAuth: Any = _by_name["ClientAuth"]
Ack: Any = _by_name["Ack"]
Sub: Any = _by_name["Sub"]
Unsub: Any = _by_name["Unsub"]
Get: Any = _by_name["Get"]
Messages: Any = _by_name["Messages"]
ClientAck: Any = _by_name["ClientAck"]
ClientRollback: Any = _by_name["ClientRollback"]
