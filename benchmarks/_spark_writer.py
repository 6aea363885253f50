"""Commits rows at a steady pace, as a process of its own: each row has the microsecond at which its commit was asked
for. The connection, how long to write and the first key come as JSON in its one argument."""

import json
import sys
import time

import pymysql

ROWS_PER_S, ROWS_PER_COMMIT = 1000, 10


def main() -> None:
    asked = json.loads(sys.argv[1])
    with pymysql.connect(**asked["connection"], autocommit=True) as connection, connection.cursor() as cursor:
        began = time.monotonic()
        for number in range(0, round(asked["seconds"] * ROWS_PER_S), ROWS_PER_COMMIT):
            time.sleep(max(0.0, began + number / ROWS_PER_S - time.monotonic()))
            at = time.time_ns() // 1000
            rows = ", ".join(f"({asked['first'] + number + row}, {at})" for row in range(ROWS_PER_COMMIT))
            cursor.execute(f"INSERT INTO shop.tick VALUES {rows}")


if __name__ == "__main__":
    main()
