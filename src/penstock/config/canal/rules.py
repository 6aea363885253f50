"""What can become of a property of canal: it is honoured, refused with a reason, or reported as ignored."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.errors import ConfigurationError

_TRUE = frozenset({"true", "on", "yes", "1"})
_FALSE = frozenset({"false", "off", "no", "0", ""})
Convert = Callable[[str], Any]


class IgnoredKey(NamedTuple):
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Honoured:
    """`to` is the setting; without `convert` it takes several properties, and a function of its own reads them."""

    to: str
    convert: Convert | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Because to ignore it would lose data or security, or could not work. Other values say nothing."""

    reason: str
    when: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Ignored:
    reason: str


Rule = Honoured | Refused | Ignored
UNKNOWN = Ignored("not a property of canal")


@dataclass(frozen=True, slots=True)
class RuleTable:
    """Rules by key, and for all keys that begin with something."""

    keys: Mapping[str, Rule]
    prefixes: Mapping[str, Rule]

    def rule(self, key: str) -> Rule | None:
        if key in self.keys:
            return self.keys[key]
        return next((rule for prefix, rule in self.prefixes.items() if key.startswith(prefix)), None)


class PropertyReader:
    """Properties of one thing while they become settings: nothing is the same as not there."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.settings: dict[str, Any] = {}
        self.said: dict[str, str] = {}  # settings by path, with the property that says them
        self.ignored: list[IgnoredKey] = []

    def text(self, key: str) -> str | None:
        return self.given(key, "") or None

    def given(self, key: str, default: str) -> str:
        """Here nothing is not the same as not there."""
        value = self.values.get(key, default).strip()
        if "${" in value:
            raise ConfigurationError(f"{key} refers with ${{…}} to a property that is nowhere")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        text = self.text(key)
        return default if text is None else self.converted(key, flag)

    def converted(self, key: str, convert: Convert) -> Any:
        text = self.text(key)
        try:
            return None if text is None else convert(text)
        except ValueError as error:
            # What is wrong with a number is its text, which may be anything: only the rule is said.
            raise ConfigurationError(f"{key}: {error}") from None

    def put(self, path: str, value: Any, *keys: str) -> None:
        """Set `a.b`, the key b of the section a. When one of `keys` has a value, that property says it, and no other
        may say something else; otherwise it is a default, which counts when nothing else does."""
        key = next((key for key in keys if self.text(key) is not None), None)
        before = self.said.get(path)
        if key is None and before is not None:
            return
        if key is not None:
            if before is not None and self._value(path) != value:
                raise ConfigurationError(f"{before} and {key} do not say the same: keep one of the two")
            self.said[path] = before or key
        *sections, name = path.split(".")
        at = self.settings
        for section in sections:
            at = at.setdefault(section, {})
        at[name] = value

    def _value(self, path: str) -> Any:
        at: Any = self.settings
        for name in path.split("."):
            at = at.get(name)
        return at

    def ignore(self, key: str, reason: str) -> None:
        if self.values.get(key, "").strip():
            self.ignored.append(IgnoredKey(key, reason))

    def apply(self, rules: Iterator[tuple[str, Rule]]) -> None:
        """What a rule alone decides."""
        for key, rule in rules:
            if isinstance(rule, Ignored):
                self.ignore(key, rule.reason)
            elif isinstance(rule, Refused):
                if (value := self.text(key)) and rule.when(value):
                    raise ConfigurationError(f"{key}: {rule.reason}")
            elif rule.convert is not None and self.text(key) is not None:
                self.put(rule.to, self.converted(key, rule.convert), key)


def flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("it is true or false")
    return word in _TRUE


def is_true(text: str) -> bool:
    return text.strip().lower() in _TRUE


def inverse(text: str) -> bool:
    return not flag(text)


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("it is a whole number") from None


def seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("it is a number") from None


def milliseconds(text: str) -> float:
    return whole(text) / 1000


def host_and_port(text: str, port: int) -> tuple[str, int]:
    """`host`, `host:port`, `[address]:port`."""
    host, colon, given = text.strip().rpartition(":")
    if not colon or given.endswith("]"):
        host, given = text.strip(), str(port)
    if not host or not given.isdecimal():
        raise ValueError("it is host:port")
    return host.removeprefix("[").removesuffix("]"), int(given)
