"""Commits changes of single products at a steady pace, as a process of its own.

The connection, the first mark and how many changes to make come as JSON in its one argument; at its end it prints, as
JSON, the nanosecond before each COMMIT was sent. The change number n is of product n + 1.
"""

import json
import sys
import time

import pymysql

CHANGES_PER_S = 200


def main() -> None:
    asked = json.loads(sys.argv[1])
    moments = list[int]()
    with pymysql.connect(**asked["connection"]) as connection, connection.cursor() as cursor:
        began = time.monotonic()
        for number in range(asked["count"]):
            time.sleep(max(0.0, began + number / CHANGES_PER_S - time.monotonic()))
            mark = asked["first"] + number
            cursor.execute(f"UPDATE shop.product SET mark = {mark}, price = price + 1 WHERE id = {number + 1}")
            moments.append(time.time_ns())
            connection.commit()
    print(json.dumps(moments))


if __name__ == "__main__":
    main()
