"""Values of every decimal, time, float and JSON form, each with the text that every server shows for it.

The texts are written down here, or follow from a rule about digits; nothing of the decoder makes them.
"""

from dataclasses import dataclass

SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
_MYSQL = ("mysql57", "mysql80", "mysql9")
_PRECISIONS = (
    (1, 0), (1, 1), (2, 1), (5, 5), (8, 0), (9, 0), (9, 9), (10, 0), (10, 2), (10, 10), (17, 8), (18, 9), (19, 10),
    (27, 18), (28, 1), (30, 30), (36, 0), (37, 9), (38, 10), (39, 0), (39, 19), (64, 1), (65, 0), (65, 29), (65, 30),
)  # fmt: skip
_MICROS = "999999"


@dataclass(frozen=True, slots=True)
class Form:
    """A type with values as SQL, and the text of each."""

    name: str
    declared: str
    values: tuple[tuple[str, str], ...]
    servers: tuple[str, ...] = SERVERS
    is_real: bool = False  # texts are compared as the numbers that they are


def _decimal(precision: int, scale: int) -> Form:
    whole = precision - scale
    digits = "".join(str((7 * i + 3) % 10) for i in range(precision)).replace("0", "4")

    def shown(number: str) -> str:
        """Digits with a point before the last `scale` of them."""
        number = number.rjust(scale + 1, "0")
        return f"{number[:-scale]}.{number[-scale:]}" if scale else number

    numbers = ["0", "1", "9" * precision, "1" + "0" * (precision - 1), digits, "9" * max(whole, 1) + "0" * scale]
    numbers = [number for number in numbers if len(number) <= precision]
    texts = list(dict.fromkeys(shown(number) for number in numbers))
    texts += [f"-{text}" for text in texts if text.strip("0.")]
    return Form(f"decimal_{precision}_{scale}", f"DECIMAL({precision},{scale})", tuple((text, text) for text in texts))


def _moments(digits: int) -> list[Form]:
    """TIME, DATETIME and TIMESTAMP with so many digits of a second."""
    zero, most, few = (f".{part[:digits]}" if digits else "" for part in ("000000", _MICROS, "000001"))
    least = f".{'1'.rjust(digits, '0')}" if digits else ""
    declared = f"({digits})" if digits else ""
    times = ["00:00:00", "-00:00:01", "838:59:59", "-838:59:59", "23:59:59", "100:00:00", "-01:02:03"]
    texts = [f"{time}{zero}" for time in times] + [f"{time}{most}" for time in ("-837:59:59", "12:34:56", "-00:00:00")]
    texts += [f"00:00:00{least}", f"-00:00:00{least}"] if digits else []
    texts = [text for text in texts if digits or text != "-00:00:00"]
    dates = ["0000-00-00 00:00:00", "1000-01-01 00:00:00", "9999-12-31 23:59:59", "2024-02-29 12:34:56"]
    moments = [f"{date}{zero}" for date in dates] + [f"9999-12-31 23:59:59{most}", f"1000-01-01 00:00:00{few}"]
    stamps = ["0000-00-00 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07", "2001-09-09 01:46:40"]
    instants = [f"{stamp}{zero}" for stamp in stamps] + [f"2038-01-19 03:14:07{most}", f"1970-01-01 00:00:01{few}"]
    return [
        Form(f"{kind}_{digits}", f"{kind.upper()}{declared}{extra}", tuple((f"'{text}'", text) for text in expected))
        for kind, extra, expected in (
            ("time", "", texts),
            ("datetime", "", moments),
            ("timestamp", " NULL DEFAULT NULL", instants),
        )
    ]


_DATES = ("0000-00-00", "1000-01-01", "9999-12-31", "2024-02-29", "2024-00-10", "2024-12-00", "2023-02-31")
_OTHERS = [
    Form("date", "DATE", tuple((f"'{text}'", text) for text in _DATES)),
    Form("year", "YEAR", (("0", "0"), ("1901", "1901"), ("2000", "2000"), ("2155", "2155"))),
    Form(
        "float",
        "FLOAT",
        (
            ("0", "0.0"), ("-0e0", "-0.0"), ("0.1", "0.10000000149011612"), ("16777217", "16777216.0"),
            ("3.4028234663852886e38", "3.4028234663852886e38"), ("-3.4028234663852886e38", "-3.4028234663852886e38"),
            ("1.1754943508222875e-38", "1.1754943508222875e-38"), ("1.401298464324817e-45", "1.401298464324817e-45"),
            ("-1.5e-30", "-1.5000000047566153e-30"), ("1e10", "1e10"),
        ),
        is_real=True,
    ),
    Form(
        "double",
        "DOUBLE",
        tuple(
            (text, text)
            for text in (
                "0e0", "-0e0", "0.1e0", "5e-324", "-5e-324", "2.2250738585072014e-308", "2.225073858507201e-308",
                "1.7976931348623157e308", "-1.7976931348623157e308", "9007199254740992e0", "1e22", "1e23",
                "123456789.12345679e0", "4.35e0", "-0.000001e0",
            )
        ),
        is_real=True,
    ),
]  # fmt: skip


def _json() -> Form:
    """As MySQL 8 and 9 print them; 5.7 prints 1.0 as 1."""
    plain = {
        "null": "null", "true": "true", "[]": "[]", "{}": "{}", '""': '""', "0": "0", "-1": "-1",
        "32767": "32767", "-32769": "-32769", "2147483648": "2147483648",
        "-9223372036854775808": "-9223372036854775808", "18446744073709551615": "18446744073709551615",
        "1.5": "1.5", "1e100": "1e100", "-2.5e-10": "-0.00000000025",
        '{"b": 1, "a": 2, "aa": [1, [2, {"c": null}]]}': '{"a": 2, "b": 1, "aa": [1, [2, {"c": null}]]}',
        r'"\\u00e9\\n\\t\\"\\\\/"': '"é\\n\\t\\"\\\\/"', '"😀"': '"😀"', '{"": {"": [""]}}': '{"": {"": [""]}}',
    }  # fmt: skip
    values = [(f"'{text}'", shown) for text, shown in plain.items()]
    values += [
        ("CAST(CAST(1.50 AS DECIMAL(10,2)) AS JSON)", "1.50"),
        ("CAST(CAST(-99999999999999999999.000000001 AS DECIMAL(40,9)) AS JSON)", "-99999999999999999999.000000001"),
        ("CAST(CAST('2024-02-29' AS DATE) AS JSON)", '"2024-02-29"'),
        ("CAST(CAST('-12:34:56.5' AS TIME(6)) AS JSON)", '"-12:34:56.500000"'),
        ("CAST(CAST('2024-02-29 01:02:03.000004' AS DATETIME(6)) AS JSON)", '"2024-02-29 01:02:03.000004"'),
        ("JSON_ARRAY(CAST(7 AS UNSIGNED), TRUE, NULL)", "[7, true, null]"),
        ("JSON_OBJECT('k', REPEAT('x', 300))", f'{{"k": "{"x" * 300}"}}'),
    ]
    large = ", ".join(f'"{"y" * 200}"' for _ in range(400))
    values.append((f"'[{large}]'", f"[{large}]"))
    return Form("json", "JSON", tuple(values), _MYSQL)


FORMS: list[Form] = [
    *(_decimal(*digits) for digits in _PRECISIONS),
    *(form for digits in range(7) for form in _moments(digits)),
    *_OTHERS,
    _json(),
]
OLD_FORMS = [form for form in FORMS if form.name in {"time_0", "datetime_0", "timestamp_0"}]
"""Those that MariaDB keeps in the format of before 5.6 with mysql56_temporal_format=OFF."""

LOOSE = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00'"


def forms_of(server: str) -> list[Form]:
    return [form for form in FORMS if server in form.servers]


def statements(form: Form, table: str) -> list[str]:
    """Make a table of the form, and fill it; `table` has its database."""
    made = [f"CREATE TABLE {table} (id INT PRIMARY KEY, c {form.declared})"]
    rows = [f"({number}, {value})" for number, (value, _) in enumerate(form.values)]
    return [*made, f"INSERT INTO {table} VALUES {', '.join(rows)}, ({len(rows)}, NULL)"]
