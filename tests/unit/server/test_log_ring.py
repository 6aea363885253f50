"""The last lines of the log, in memory."""

import logging

from penstock.server.log_ring import LogRing


def record(text: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("penstock.x", logging.INFO, "", 0, text, arguments, None)


def test_it_keeps_the_last_lines_and_cuts_long_ones() -> None:
    ring = LogRing(3)
    for number in range(5):
        ring.handle(record("line %d", number))
    ring.handle(record("x" * 5000))
    lines = ring.tail(10).splitlines()
    assert [line[-6:] for line in lines[:2]] == ["line 3", "line 4"]
    assert len(lines[2]) == 1000
    assert ring.tail(1) == lines[2]
    assert ring.tail(0) == ""


def test_a_destination_is_told_from_those_whose_name_begins_alike() -> None:
    ring = LogRing()
    for name in ("shop", "shop2", "shop-2", "shop.2", "shop"):
        ring.handle(record("done destination=%s: yes", name))
    assert ring.tail(10, "shop").count("\n") == 1
    assert ring.tail(10, "shop2").count("\n") == 0
    assert ring.tail(10, "s.*") == ""


def test_secrets_are_masked_and_answers_bounded() -> None:
    ring = LogRing()
    ring.handle(record("login with s3cret and %s", "pw"))
    assert ring.tail(1, secrets={"s3cret", "pw", ""}).endswith("login with *** and pw")
    for _ in range(5000):
        ring.handle(record("é" * 1000))
    assert len(ring.tail(5000).encode()) <= 4 << 20


def test_it_is_attached_and_detached() -> None:
    ring, logger = LogRing(), logging.getLogger("penstock.attached")
    ring.attach()
    try:
        logger.warning("first")
    finally:
        ring.detach()
    logger.warning("second")
    assert ring.tail(10).endswith("first")
