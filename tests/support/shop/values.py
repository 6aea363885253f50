"""Random rows of the shop: Unicode, NULLs, dates that no calendar has, keys in other spellings, dangling references."""

import json
import random
from decimal import Decimal
from typing import Any

SESSION_MODE = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'"
"""Lets a session write dates that no calendar has, as old applications do."""

LARGE_KEY = 1 << 63
COUNTRIES = range(1, 9)
STORES = range(-3, 12)
TAGS = range(1, 16)
CUSTOMER_NUMBERS = 90
ORDER_STATES = ("draft", "open", "open", "paid", "paid", "shipped", None)
PRODUCT_STATES = ("draft", "active", "active", "active", "sold out", "hidden", None)
CATEGORIES = (
    *("", "Garden", "garden:tools", "Küche", "Büro", "toys", "50% off", "%half", "%", "a:b", "%3A", "漢字", "lamps"),
    *("Straße", "books", "Music", "outdoor", "x y", "🎁" * 150, "e-bikes", "'quoted'", 'dou"ble', "back\\slash"),
)
WORDS = (
    "kettle",
    "lamp",
    "Ünïcödé",
    "漢字",
    'quo"te',
    "back\\slash",
    "new\nline",
    "😀",
    "",
    "null",
    "Lamp",
    "LAMP",
    "\x7f",
)
_DAYS = ("2024-02-29", "1999-12-31", "2026-07-01", "1970-01-01", "0000-00-00", "2024-02-30", "2023-00-00", None)
_INSTANTS = ("2024-02-29 12:30:15.123456", "2001-01-01 00:00:01.000001", "2030-12-31 23:59:59.5", None)


def text(pick: random.Random) -> str:
    """Return some words."""
    return " ".join(pick.choices(WORDS, k=pick.randrange(1, 4)))


def maybe_text(pick: random.Random) -> str | None:
    """Return some words, or NULL."""
    return None if pick.random() < 0.2 else text(pick)


def money(pick: random.Random, digits: int = 6) -> Decimal:
    """Return an amount with two decimals."""
    return Decimal(pick.randrange(10**digits)) / 100


def exact_price(pick: random.Random) -> Decimal | None:
    """Return a price that a 64-bit float may not hold, or NULL."""
    if pick.random() < 0.1:
        return None
    return Decimal(pick.choice((pick.randrange(10**6), pick.randrange(10**19), -pick.randrange(10**19)))) / 10000


def customer_key(pick: random.Random) -> int:
    """Return the key of a customer who may exist."""
    return pick.randrange(1, CUSTOMER_NUMBERS) + pick.choice((0, LARGE_KEY))


def spelling(pick: random.Random, code: str) -> str:
    """Return a text that the collation takes for the same key."""
    spellings = (code, code, code.upper() if len(code.upper()) == len(code) else code, code.lower(), code + "  ")
    return pick.choice(spellings).replace("ü", pick.choice("üuÜ"))


def category_code(pick: random.Random) -> str | None:
    """Return a reference to a category in some spelling, or NULL, or to none."""
    return pick.choice((None, "no such", *(spelling(pick, pick.choice(CATEGORIES)) for _ in range(6))))


def day(pick: random.Random) -> str | None:
    """Return a DATE, which may be one that no calendar has."""
    return pick.choice((*_DAYS, f"20{pick.randrange(10, 30)}-03-{pick.randrange(10, 31)}"))


def moment(pick: random.Random) -> str | None:
    """Return a DATETIME with milliseconds, which may be one that no calendar has."""
    date = day(pick)
    return date and f"{date} {pick.choice(('00:00:00', '23:59:59.999', f'12:00:{pick.randrange(10, 60)}.250'))}"


def instant(pick: random.Random) -> str | None:
    """Return a TIMESTAMP, which may be zero or NULL."""
    return pick.choice((*_INSTANTS, "0000-00-00 00:00:00", f"2025-06-0{pick.randrange(1, 10)} 10:20:30.654321"))


def new_country(pick: random.Random, number: int) -> dict[str, Any]:
    return {"id": number, "code": f"{number:02d}", "name": text(pick), "vat": pick.choice((None, money(pick, 4)))}


def new_customer(pick: random.Random, key: int) -> dict[str, Any]:
    return {
        "id": key,
        "first_name": maybe_text(pick),
        "last_name": text(pick),
        "points": pick.choice((0, pick.randrange(1000), (1 << 63) - 1)),
        "born": day(pick),
        "country_id": pick.choice((None, 99, *COUNTRIES)),
    }


def new_store(pick: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": text(pick),
        "city": maybe_text(pick),
        "owner_id": None if pick.random() < 0.2 else number % 40 + pick.choice((0, LARGE_KEY)),
        "country_id": pick.choice((None, *COUNTRIES)),
    }


def new_category(pick: random.Random, code: str) -> dict[str, Any]:
    rank = pick.choice((None, 1, 2, 2, 3, -1))
    return {"code": code, "parent_code": category_code(pick), "name": text(pick), "place": rank}


def new_product(pick: random.Random) -> dict[str, Any]:
    parts = [text(pick) for _ in range(pick.randrange(3))]
    return {
        "sku": pick.choice((None, f"SKU {pick.randrange(1000)}")),
        "name": text(pick),
        "description": maybe_text(pick),
        "price": exact_price(pick),
        "weight": pick.choice((None, 0.1, pick.random() * 1e6, -1.5e-7, 1e22)),
        "stock": pick.choice((None, 0, pick.randrange(-5, 100))),
        "state": pick.choice(PRODUCT_STATES),
        "guid": pick.choice((None, pick.randbytes(16), bytes(16), pick.randbytes(14) + b"\0\0")),
        "attributes": pick.choice(
            (None, json.dumps({"colour": text(pick), "size": pick.randrange(50), "parts": parts}))
        ),
        "deleted": pick.choice((0, 0, 0, 0, None, 1, -1)),
        "updated_at": instant(pick),
        "category_code": category_code(pick),
        "store_id": pick.choice((None, 99, *STORES)),
    }


def new_order(pick: random.Random) -> dict[str, Any]:
    return {
        "order_no": f"{pick.choice('abc')}-{pick.randrange(10**6)}",
        "state": pick.choice(ORDER_STATES),
        "total": money(pick, 11),
        "billing_id": customer_key(pick),
        "shipping_id": pick.choice((None, customer_key(pick))),
        "store_id": pick.choice((None, 99, *STORES)),
        "placed_at": moment(pick),
        "paid_at": instant(pick),
        "due": day(pick),
        "deleted_at": pick.choice((*[None] * 8, "0000-00-00 00:00:00", "2025-05-05 05:05:05")),
    }


def new_lines(pick: random.Random, order: int, count: int) -> list[dict[str, Any]]:
    positions = sorted(pick.sample(range(-2, 10), count))
    return [new_line(pick, order, position) for position in positions]


def new_line(pick: random.Random, order: int, position: int) -> dict[str, Any]:
    return {
        "order_id": order,
        "position": position,
        "bundle_position": pick.choice((None, None, pick.randrange(-2, 10))),
        "product_id": pick.choice((None, *(pick.randrange(1, 110) for _ in range(8)))),
        "quantity": pick.choice((-1, 0, 1, 1, 2, 3, 3, 50)),
        "price": pick.choice((None, *(money(pick) for _ in range(5)))),
    }


def new_tag(pick: random.Random, number: int) -> dict[str, Any]:
    return {"id": number, "name": pick.choice((None, text(pick), f"tag {number}", "Sale", "sale", "SALE"))}
