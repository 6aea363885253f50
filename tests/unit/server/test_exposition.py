"""Prometheus' text, and what is counted of canal's port."""

import threading

import pytest

from penstock.server.admin.prometheus import Exposition
from penstock.server.canal.traffic import Traffic
from tests.support.admin_support import parse_metrics, sample


def test_families_come_once_and_labels_are_escaped() -> None:
    out = Exposition()
    out.add("gauge", "a", "About\na.", 1, where='x"\\\ny')
    out.add("counter", "b", "About b.", 2.5)
    out.add("gauge", "a", "About\na.", float("inf"), where="z")
    out.add("gauge", "c", "Nothing is known.", None)
    text = out.to_text()
    assert text.splitlines() == [
        "# HELP a About\\na.",
        "# TYPE a gauge",
        'a{where="x\\"\\\\\\ny"} 1',
        'a{where="z"} +Inf',
        "# HELP b About b.",
        "# TYPE b counter",
        "b 2.5",
    ]
    assert len(parse_metrics(text)) == 3


def test_a_histogram_adds_up() -> None:
    out = Exposition()
    out.add_histogram("h", "About h.", (2.5, 10.0), [3, 0, 2], 40.25, of="shop")
    metrics = parse_metrics(out.to_text())
    assert [sample(metrics, "h_bucket", of="shop", le=bound) for bound in ("2.5", "10", "+Inf")] == [3, 3, 5]
    assert (sample(metrics, "h_sum", of="shop"), sample(metrics, "h_count", of="shop")) == (40.25, 5)


@pytest.mark.parametrize(
    "text", ["a 1\n", "# TYPE a gauge\na 1\n", "# HELP a x\n# TYPE a gauge\na 1\na 1\n", "# HELP a"]
)
def test_the_parser_of_these_tests_is_strict(text: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        parse_metrics(text)


def test_traffic_is_counted_by_destination() -> None:
    traffic = Traffic()
    traffic.add_destination("shop")
    traffic.count_answer("shop", "GET", 0.001)
    traffic.count_answer("shop", "GET", 0.02)
    traffic.count_answer("shop", "ACK", 7)
    traffic.count_sent("shop", 100, is_empty=False)
    traffic.count_sent("shop", 0, is_empty=True)
    traffic.count_refusal("shop", "GET", 400)
    counts = traffic.counts()["shop"]
    assert counts.packets == {"GET": 3, "ACK": 1}
    assert counts.errors == {400: 1}
    assert (counts.sent_bytes, counts.empty_batches) == (100, 1)
    assert counts.latencies == [1, 0, 1, 0, 1]
    assert counts.latency_ms == pytest.approx(7021)


def test_names_that_clients_make_up_take_no_room() -> None:
    traffic = Traffic()

    def hammer(first: int) -> None:
        for number in range(first, first + 500):
            traffic.count_refusal(f"made-up-{number}", "GET", 400)
            traffic.count_answer(f"made-up-{number}", "CLIENTROLLBACK", 0.001)

    threads = [threading.Thread(target=hammer, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (name,) = traffic.counts()
    assert name == ""
    assert traffic.counts()[""].errors == {400: 2000}
