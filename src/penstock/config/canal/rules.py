"""The rules for canal's properties: each is honoured, refused with a reason, or reported as ignored."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.errors import ConfigurationError

_TRUE = frozenset({"true", "on", "yes", "1"})
_FALSE = frozenset({"false", "off", "no", "0", ""})
Convert = Callable[[str], Any]


class IgnoredKey(NamedTuple):
    """A property that has no effect, and why."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Honoured:
    """A property of canal that sets the YAML keys `to`, converted by `convert`; `note` describes it in
    docs/settings.md. Without `convert`, the setting depends on several properties, and a function of its own reads
    them."""

    to: str
    convert: Convert | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A property that is an error for some values, because ignoring it would lose data or security, or could not
    work."""

    reason: str
    when: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Ignored:
    """A property of canal that has no effect in Penstock, and why."""

    reason: str


Rule = Honoured | Refused | Ignored
UNKNOWN = Ignored("not a property of canal")


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rules by key, and by the beginning of keys."""

    keys: Mapping[str, Rule]
    prefixes: Mapping[str, Rule]

    def find_rule(self, key: str) -> Rule | None:
        """Return the rule for a property, or None for one that is unknown."""
        if key in self.keys:
            return self.keys[key]
        return next((rule for prefix, rule in self.prefixes.items() if key.startswith(prefix)), None)


class PropertyReader:
    """Turns the properties of a server or an instance into settings. An empty value counts as not given."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.settings: dict[str, Any] = {}
        self.set_by: dict[str, str] = {}  # settings by path, with the property that says them
        self.ignored: list[IgnoredKey] = []

    def read_text(self, key: str) -> str | None:
        """Return the value of a property, or None if it is empty or not given."""
        return self.read_given(key, "") or None

    def read_given(self, key: str, default: str) -> str:
        """Return the value of a property; only if it is not given, the default. An empty value is returned as it is."""
        value = self.values.get(key, default).strip()
        if "${" in value:
            raise ConfigurationError(f"{key} refers with ${{…}} to a property that is nowhere")
        return value

    def read_flag(self, key: str, default: bool = False) -> bool:
        """Return a property as a boolean."""
        text = self.read_text(key)
        return default if text is None else self.read_converted(key, parse_flag)

    def read_converted(self, key: str, convert: Convert) -> Any:
        """Return a converted property, or None if it is empty or not given. Raises ConfigurationError that names the
        property."""
        text = self.read_text(key)
        try:
            return None if text is None else convert(text)
        except ValueError as error:
            # What is wrong with a number is its text, which may be anything: only the rule is named.
            raise ConfigurationError(f"{key}: {error}") from None

    def set(self, path: str, value: Any, *keys: str) -> None:
        """Set the setting `a.b`, the key b of the section a. If one of the properties `keys` has a value, that one sets
        it, and another property may not set it differently; otherwise the value is a default, which counts when nothing
        else does."""
        key = next((key for key in keys if self.read_text(key) is not None), None)
        before = self.set_by.get(path)
        if key is None and before is not None:
            return
        if key is not None:
            if before is not None and self._current_value(path) != value:
                raise ConfigurationError(f"{before} and {key} do not say the same: keep one of the two")
            self.set_by[path] = before or key
        *sections, name = path.split(".")
        target = self.settings
        for section in sections:
            target = target.setdefault(section, {})
        target[name] = value

    def _current_value(self, path: str) -> Any:
        """Return the value that a setting has now."""
        value: Any = self.settings
        for name in path.split("."):
            value = value.get(name)
        return value

    def ignore(self, key: str, reason: str) -> None:
        """Report a property as ignored, if it is given."""
        if self.values.get(key, "").strip():
            self.ignored.append(IgnoredKey(key, reason))

    def apply(self, rules: Iterator[tuple[str, Rule]]) -> None:
        """Set, refuse or ignore each property that its rule alone decides."""
        for key, rule in rules:
            if isinstance(rule, Ignored):
                self.ignore(key, rule.reason)
            elif isinstance(rule, Refused):
                if (value := self.read_text(key)) and rule.when(value):
                    raise ConfigurationError(f"{key}: {rule.reason}")
            elif rule.convert is not None and self.read_text(key) is not None:
                self.set(rule.to, self.read_converted(key, rule.convert), key)


def parse_flag(text: str) -> bool:
    """Parse a boolean as canal writes it. Raises ValueError."""
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("it is true or false")
    return word in _TRUE


def is_true(text: str) -> bool:
    """Return whether a text means true."""
    return text.strip().lower() in _TRUE


def parse_inverse(text: str) -> bool:
    """Parse a boolean and return its opposite."""
    return not parse_flag(text)


def parse_whole(text: str) -> int:
    """Parse a whole number. Raises ValueError."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("it is a whole number") from None


def parse_seconds(text: str) -> float:
    """Parse a number of seconds. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        raise ValueError("it is a number") from None


def parse_milliseconds(text: str) -> float:
    """Parse a number of milliseconds and return seconds. Raises ValueError."""
    return parse_whole(text) / 1000


def parse_host_and_port(text: str, port: int) -> tuple[str, int]:
    """Parse `host`, `host:port` or `[address]:port`. Raises ValueError."""
    host, colon, given = text.strip().rpartition(":")
    if not colon or given.endswith("]"):
        host, given = text.strip(), str(port)
    if not host or not given.isdecimal():
        raise ValueError("it is host:port")
    return host.removeprefix("[").removesuffix("]"), int(given)
