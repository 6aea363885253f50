"""Does with the PyPI client what lines on its input say, as CanalDriver.java does with the Java one."""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
out = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what the client prints

from canal.client import Client  # noqa: E402
from canal.protocol import EntryProtocol_pb2 as entries  # noqa: E402

client = Client()


def answer(words):
    match words:
        case ["connect", host, port]:
            client.connect(host, int(port))
            client.check_valid(b"", b"")
        case ["subscribe", destination, client_id, table_filter]:
            client.subscribe(client_id.encode(), destination.encode(), table_filter.encode())
        case ["get", size]:
            return shown(client.get(int(size)))
        case ["getWithoutAck", size]:
            return shown(client.get_without_ack(int(size)))
        case ["ack", number]:
            client.ack(int(number))
        case ["rollback", number]:
            client.rollback(int(number))
        case ["disconnect"]:
            client.disconnect()
        case _:
            raise ValueError(words)
    return {}


def shown(message):
    return {"id": message["id"], "entries": [entry_shown(entry) for entry in message["entries"]]}


def entry_shown(entry):
    header = entry.header
    shown = {
        "entryType": entries.EntryType.Name(entry.entryType),
        "schema": header.schemaName,
        "table": header.tableName,
        "eventType": entries.EventType.Name(header.eventType),
    }
    if entry.entryType == entries.EntryType.ROWDATA:
        change = entries.RowChange()
        change.MergeFromString(entry.storeValue)
        rows = [
            {side: [column_shown(column) for column in getattr(row, f"{side}Columns")] for side in ("before", "after")}
            for row in change.rowDatas
        ]
        shown["change"] = {"isDdl": change.isDdl, "sql": change.sql, "rows": rows}
    return shown


def column_shown(column):
    names = ("index", "sqlType", "name", "isKey", "updated", "isNull", "value", "mysqlType")
    return {name: getattr(column, name) for name in names}


for line in sys.stdin:
    try:
        result = answer(line.split())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        result = {"error": repr(error)}
    print(json.dumps(result), file=out, flush=True)
