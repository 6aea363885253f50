"""Changes to products, their tags and categories."""

from typing import Any

from tests.support.shop import values
from tests.support.shop.steps import Hand, id_range, step


def some_code(hand: Hand) -> str:
    """Return the code of a category as somebody writes it."""
    return values.spelling(hand.pick, hand.pick.choice(values.CATEGORIES))


def product_columns(hand: Hand, *names: str) -> dict[str, Any]:
    """Return new values for these columns of a product."""
    new = values.new_product(hand.pick)
    return {name: new[name] for name in names}


@step(10)
def insert_product(hand: Hand) -> None:
    hand.insert("product", *(values.new_product(hand.pick) for _ in range(hand.pick.choice((1, 1, 3)))))
    links = [{"product_id": hand.cursor.lastrowid, "tag_id": tag} for tag in hand.pick.sample(values.TAGS, 2)]
    hand.insert("product_tag", *links)


@step(10)
def update_product(hand: Hand) -> None:
    names = ("sku", "name", "description", "price", "weight", "stock", "guid", "attributes", "updated_at")
    hand.change("product", hand.key("product"), **product_columns(hand, *hand.pick.sample(names, 2)))


@step(6)
def flip_product_state(hand: Hand) -> None:
    hand.change("product", hand.key("product"), **product_columns(hand, "state"))


@step(4)
def soft_delete_product(hand: Hand) -> None:
    hand.change("product", hand.key("product"), deleted=hand.pick.choice((0, 1, None)))


@step(6)
def move_product(hand: Hand) -> None:
    names = hand.pick.choice((["category_code"], ["store_id"], ["category_code", "store_id"]))
    hand.change("product", hand.key("product"), **product_columns(hand, *names))


@step(3)
def rekey_product(hand: Hand) -> None:
    hand.change("product", hand.key("product"), id=hand.free_id())


@step(8)
def delete_product(hand: Hand) -> None:
    key = hand.key("product")
    hand.run("DELETE FROM product WHERE id = %s", key)
    if hand.pick.random() < 0.5:
        hand.run("DELETE FROM product_tag WHERE product_id = %s", key)


@step(3)
def replace_product(hand: Hand) -> None:
    hand.insert("product", {"id": hand.key("product"), **values.new_product(hand.pick)}, verb="REPLACE")


@step(3)
def upsert_product(hand: Hand) -> None:
    key = hand.pick.choice((hand.key("product"), hand.free_id()))
    hand.run(
        "INSERT INTO product (id, name, state) VALUES (%s, %s, 'active')"
        " ON DUPLICATE KEY UPDATE name = VALUES(name), stock = stock + 1",
        *(key, values.text(hand.pick)),
    )


@step(2, is_large=True)
def update_products_in_a_range(hand: Hand) -> None:
    hand.run("UPDATE product SET stock = stock + 1 WHERE id BETWEEN %s AND %s", *id_range(hand, "product"))


@step(1, is_large=True)
def update_many_rows_of_a_joined_table(hand: Hand) -> None:
    table, change = hand.pick.choice(
        (
            ("product", "name = CONCAT(LEFT(name, 40), '.')"),
            ("order_line", "price = price + 1"),
            ("customer", "points = points DIV 2"),
        )
    )
    hand.run(f"UPDATE {table} SET {change} LIMIT {int(hand.large_rows)}")


@step(5)
def link_tag(hand: Hand) -> None:
    hand.insert("product_tag", {"product_id": hand.key("product"), "tag_id": hand.pick.choice(values.TAGS)})


@step(5)
def unlink_tag(hand: Hand) -> None:
    hand.run("DELETE FROM product_tag WHERE product_id = %s ORDER BY tag_id LIMIT 1", hand.key("product"))


@step(4)
def move_tag_link(hand: Hand) -> None:
    column, new = hand.pick.choice((("tag_id", hand.pick.choice(values.TAGS)), ("product_id", hand.key("product"))))
    key = hand.key("product")
    hand.run(f"UPDATE product_tag SET {column} = %s WHERE product_id = %s ORDER BY tag_id DESC LIMIT 1", new, key)


@step(4)
def update_tag(hand: Hand) -> None:
    new = values.new_tag(hand.pick, hand.pick.choice(values.TAGS))
    hand.change("tag", new["id"], name=new["name"])


@step(2)
def rekey_tag(hand: Hand) -> None:
    hand.change("tag", hand.pick.choice(values.TAGS), id=hand.pick.choice(values.TAGS))


@step(2)
def delete_tag(hand: Hand) -> None:
    hand.run("DELETE FROM tag WHERE id = %s", hand.pick.choice(values.TAGS))


@step(4)
def upsert_tag(hand: Hand) -> None:
    new = values.new_tag(hand.pick, hand.pick.choice(values.TAGS))
    hand.run("INSERT INTO tag (id, name) VALUES (%s, %s) ON DUPLICATE KEY UPDATE name = VALUES(name)", *new.values())


@step(4)
def insert_category(hand: Hand) -> None:
    hand.insert("category", values.new_category(hand.pick, some_code(hand)))


@step(4)
def update_category(hand: Hand) -> None:
    new = values.new_category(hand.pick, some_code(hand))
    hand.change("category", new["code"], name=new["name"], place=new["place"])


@step(4)
def move_category(hand: Hand) -> None:
    hand.change("category", some_code(hand), parent_code=values.category_code(hand.pick))


@step(3)
def respell_category(hand: Hand) -> None:
    """The key becomes another text that its collation takes for the same one."""
    code = hand.pick.choice(values.CATEGORIES)
    hand.change("category", code, code=values.spelling(hand.pick, code))


@step(2)
def rekey_category(hand: Hand) -> None:
    hand.change("category", some_code(hand), code=some_code(hand))


@step(2)
def replace_category(hand: Hand) -> None:
    hand.insert("category", values.new_category(hand.pick, some_code(hand)), verb="REPLACE")


@step(2)
def delete_category(hand: Hand) -> None:
    hand.run("DELETE FROM category WHERE code = %s", some_code(hand))


@step(2)
def delete_and_insert_category(hand: Hand) -> None:
    code = hand.pick.choice(values.CATEGORIES)
    hand.run("DELETE FROM category WHERE code = %s", code)
    hand.insert("category", values.new_category(hand.pick, values.spelling(hand.pick, code)))
