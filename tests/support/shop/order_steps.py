"""Changes to orders and their lines."""

from tests.support.shop import values
from tests.support.shop.steps import Hand, id_range, step


@step(12)
def insert_order(hand: Hand) -> None:
    hand.insert("orders", *(values.new_order(hand.pick) for _ in range(hand.pick.choice((1, 1, 4)))))
    lines = values.new_lines(hand.pick, hand.cursor.lastrowid, hand.pick.randrange(1, 6))
    hand.insert("order_line", *lines)


@step(8)
def update_order(hand: Hand) -> None:
    new = values.new_order(hand.pick)
    names = hand.pick.sample(("order_no", "total", "placed_at", "paid_at", "due"), 2)
    hand.change("orders", hand.key("orders"), **{name: new[name] for name in names})


@step(8)
def flip_order_state(hand: Hand) -> None:
    hand.change("orders", hand.key("orders"), state=hand.pick.choice(values.ORDER_STATES))


@step(4)
def soft_delete_order(hand: Hand) -> None:
    deleted_at = hand.pick.choice((None, "0000-00-00 00:00:00", "2026-01-02 03:04:05"))
    hand.change("orders", hand.key("orders"), deleted_at=deleted_at)


@step(6)
def move_order(hand: Hand) -> None:
    new = values.new_order(hand.pick)
    name = hand.pick.choice(("billing_id", "shipping_id", "store_id"))
    hand.change("orders", hand.key("orders"), **{name: new[name]})


@step(4)
def rekey_order(hand: Hand) -> None:
    old, new = hand.key("orders"), hand.free_id()
    hand.change("orders", old, id=new)
    if hand.pick.random() < 0.5:
        hand.run("UPDATE order_line SET order_id = %s WHERE order_id = %s", new, old)


@step(8)
def delete_order(hand: Hand) -> None:
    key = hand.key("orders")
    hand.run("DELETE FROM orders WHERE id = %s", key)
    if hand.pick.random() < 0.7:
        hand.run("DELETE FROM order_line WHERE order_id = %s", key)


@step(8)
def insert_line(hand: Hand) -> None:
    hand.insert("order_line", values.new_line(hand.pick, hand.key("orders"), hand.pick.randrange(-2, 12)))


@step(8)
def update_line(hand: Hand) -> None:
    new = values.new_line(hand.pick, *hand.line())
    name = hand.pick.choice(("quantity", "price", "product_id", "bundle_position"))
    hand.run(
        f"UPDATE order_line SET {name} = %s WHERE order_id = %s AND position = %s",
        *(new[name], new["order_id"], new["position"]),
    )


@step(5)
def move_line(hand: Hand) -> None:
    hand.run(
        "UPDATE order_line SET order_id = %s WHERE order_id = %s AND position = %s", hand.key("orders"), *hand.line()
    )


@step(4)
def rekey_line(hand: Hand) -> None:
    hand.run(
        "UPDATE order_line SET position = %s WHERE order_id = %s AND position = %s",
        *(hand.pick.randrange(-2, 12), *hand.line()),
    )


@step(6)
def delete_line(hand: Hand) -> None:
    hand.run("DELETE FROM order_line WHERE order_id = %s AND position = %s", *hand.line())


@step(3)
def shift_lines(hand: Hand) -> None:
    """Every line of an order takes the key that the next one had."""
    order = hand.key("orders")
    hand.run("UPDATE order_line SET position = position + 1 WHERE order_id = %s ORDER BY position DESC", order)


@step(3)
def replace_line(hand: Hand) -> None:
    order, position = hand.line()
    hand.insert("order_line", values.new_line(hand.pick, order, position), verb="REPLACE")


@step(3, is_large=True)
def update_two_tables(hand: Hand) -> None:
    hand.run(
        "UPDATE orders o JOIN order_line l ON l.order_id = o.id SET o.total = o.total + 1, l.quantity = l.quantity - 1"
        " WHERE o.id BETWEEN %s AND %s AND l.position > %s",
        *(*id_range(hand, "orders"), hand.pick.randrange(8)),
    )


@step(2)
def delete_from_two_tables(hand: Hand) -> None:
    hand.run(
        "DELETE o, l FROM orders o LEFT JOIN order_line l ON l.order_id = o.id WHERE o.id = %s", hand.key("orders")
    )


@step(4)
def change_one_order_again_and_again(hand: Hand) -> None:
    key, new = hand.key("orders"), values.new_order(hand.pick)
    hand.change("orders", key, state="draft")
    hand.change("orders", key, billing_id=new["billing_id"])
    if hand.pick.random() < 0.5:
        hand.run("DELETE FROM orders WHERE id = %s", key)
        hand.insert("orders", {"id": key, **new})
    hand.change("orders", key, state="paid", total=values.money(hand.pick))


@step(3)
def insert_and_delete_order(hand: Hand) -> None:
    hand.insert("orders", values.new_order(hand.pick))
    hand.run("DELETE FROM orders WHERE id = %s", hand.cursor.lastrowid)
