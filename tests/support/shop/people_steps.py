"""Changes to customers, stores and countries, and changes that no document shows."""

from tests.support.shop import values
from tests.support.shop.schema import TABLES
from tests.support.shop.steps import Hand, step


@step(5)
def insert_customer(hand: Hand) -> None:
    hand.insert("customer", values.new_customer(hand.pick, values.customer_key(hand.pick)))


@step(6)
def update_customer(hand: Hand) -> None:
    new = values.new_customer(hand.pick, values.customer_key(hand.pick))
    names = hand.pick.sample(("first_name", "last_name", "points", "born"), 2)
    hand.change("customer", new["id"], **{name: new[name] for name in names})


@step(3)
def move_customer(hand: Hand) -> None:
    new = values.new_customer(hand.pick, values.customer_key(hand.pick))
    hand.change("customer", new["id"], country_id=new["country_id"])


@step(3)
def rekey_customer(hand: Hand) -> None:
    hand.change("customer", values.customer_key(hand.pick), id=values.customer_key(hand.pick))


@step(3)
def delete_customer(hand: Hand) -> None:
    key = values.customer_key(hand.pick)
    hand.run("DELETE FROM customer WHERE id = %s", key)
    if hand.pick.random() < 0.3:
        hand.run("DELETE FROM orders WHERE billing_id = %s", key)


@step(4)
def update_store(hand: Hand) -> None:
    new = values.new_store(hand.pick, hand.pick.choice(values.STORES))
    name = hand.pick.choice(("name", "city", "country_id", "owner_id"))
    hand.change("store", new["id"], **{name: new[name]})


@step(3)
def swap_store_owners(hand: Hand) -> None:
    """Two stores exchange their owners; the owner is unique at every moment."""
    first, other = hand.pick.sample(values.STORES, 2)
    hand.cursor.execute("SELECT id, owner_id FROM store WHERE id IN (%s, %s) FOR UPDATE", (first, other))
    owners = dict(hand.cursor.fetchall())
    hand.change("store", first, owner_id=None)
    hand.change("store", other, owner_id=owners.get(first))
    hand.change("store", first, owner_id=owners.get(other))


@step(2)
def rekey_store(hand: Hand) -> None:
    hand.change("store", hand.pick.choice(values.STORES), id=hand.pick.choice(values.STORES))


@step(2)
def delete_store(hand: Hand) -> None:
    store = hand.pick.choice(values.STORES)
    hand.run("DELETE FROM store WHERE id = %s", store)
    if hand.pick.random() < 0.7:
        hand.insert("store", values.new_store(hand.pick, store))


@step(3)
def replace_store(hand: Hand) -> None:
    """REPLACE removes the row with this id and the row with this owner."""
    hand.insert("store", values.new_store(hand.pick, hand.pick.choice(values.STORES)), verb="REPLACE")


@step(2)
def update_country(hand: Hand) -> None:
    new = values.new_country(hand.pick, hand.pick.choice(values.COUNTRIES))
    hand.change("country", new["id"], name=new["name"], vat=new["vat"])


@step(1)
def delete_country(hand: Hand) -> None:
    country = hand.pick.choice(values.COUNTRIES)
    hand.run("DELETE FROM country WHERE id = %s", country)
    if hand.pick.random() < 0.7:
        hand.insert("country", values.new_country(hand.pick, country))


@step(2)
def upsert_country(hand: Hand) -> None:
    new = values.new_country(hand.pick, hand.pick.choice(values.COUNTRIES))
    hand.run(
        "INSERT INTO country (id, code, name, vat) VALUES (%s, %s, %s, %s)"
        " ON DUPLICATE KEY UPDATE name = VALUES(name), vat = vat + 1",
        *new.values(),
    )


@step(6)
def update_unused_column(hand: Hand) -> None:
    table = hand.pick.choice(list(TABLES))
    hand.run(f"UPDATE {table} SET remark = %s LIMIT {hand.pick.choice((1, 5))}", values.text(hand.pick))


@step(2)
def update_to_the_same_value(hand: Hand) -> None:
    hand.run("UPDATE product SET name = name WHERE id = %s", hand.key("product"))
