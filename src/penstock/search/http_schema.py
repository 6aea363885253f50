"""Mapping and settings of one index of Elasticsearch or OpenSearch: created once, then checked.

Invariant: an index that is there is never given another mapping; of its settings only a missing `gc_deletes` is set.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import ConfigurationError, SinkUnavailableError
from penstock.search import _json, mapping
from penstock.search.delivery import HttpResponse
from penstock.search.fields import check_epoch, check_fields, check_same_fields
from penstock.search.http_requests import IndexRequests
from penstock.search.index import FieldKind, IndexLayout
from penstock.search.writer_term import WriterTerm

log = logging.getLogger(__name__)

_CLAIMS = 10
# An index that nobody searches yet.
_LOAD_SETTINGS = {"index.refresh_interval": "-1", "index.number_of_replicas": 0}
_OWN_META = "/_mapping?filter_path=*.mappings._meta.penstock"


class IndexSchema:
    """The declared fields of one index, as the server has them."""

    def __init__(self, requests: IndexRequests) -> None:
        self._requests = requests
        self._fields: dict[str, FieldKind] | None = None
        self._nested: set[str] = set()

    def prepare(self, fields: Mapping[str, FieldKind], layout: IndexLayout) -> None:
        """Create the index if it is missing, or check that it has these fields."""
        check_fields(fields, layout.nested)
        there = self._load_mapping() or self._create(fields, layout)
        expected = mapping.build_creation_body(fields, layout)["mappings"]
        check_same_fields(mapping.read_mapping(expected), mapping.read_mapping(there), self._requests.where)
        self._check_nested(mapping.read_nested(expected) - mapping.read_nested(there))
        self._retain_deletes()
        kinds = self._remember_fields(there)
        for name, kind in fields.items():
            if kind is FieldKind.UNSIGNED and kinds.get(name) is FieldKind.KEYWORD:
                kinds[name] = kind  # a keyword only because the server has no better type

    def known_fields(self) -> dict[str, FieldKind]:
        """Return the fields of the index that are declared."""
        if self._fields is None:
            there = self._load_mapping()
            return {} if there is None else self._remember_fields(there)
        return self._fields

    def find_nested(self, field: str) -> str | None:
        """Return the path of the nested objects that hold a field, the innermost ones; None if it is in none."""
        self.known_fields()
        return max((path for path in self._nested if field.startswith(f"{path}.")), key=len, default=None)

    def _create(self, fields: Mapping[str, FieldKind], layout: IndexLayout) -> dict[str, Any]:
        """Create the index, unless somebody else does it meanwhile, and return its mapping."""
        for has_unsigned in (True, False):
            body = mapping.build_creation_body(fields, layout, has_unsigned=has_unsigned)
            answer = self._requests.request("PUT", "", _json.dumps(body))
            # Elasticsearch before 7.11, and without its module, has no such type; nor has OpenSearch before 2.8.
            if answer.status != 400 or b"[unsigned_long]" not in answer.content:
                break
        if answer.status < 300:
            log.info("search index created index=%s", self._requests.where)
        elif b"resource_already_exists_exception" not in answer.content:
            self._requests.check_answer(answer)
        return self._load_mapping(is_required=True) or {}

    def _check_nested(self, missing: set[str]) -> None:
        """Raise an error if objects that are declared nested are plain ones in the index."""
        if missing:
            raise ConfigurationError(
                f"{self._requests.where} exists with other fields: {', '.join(sorted(missing))} are plain objects,"
                " declared nested. Build a new index, or declare what is there"
            )

    def _remember_fields(self, there: dict[str, Any]) -> dict[str, FieldKind]:
        """Keep what searches need of a mapping, and return the fields whose type is one of ours."""
        known, self._nested = set(FieldKind), mapping.read_nested(there)
        kinds = mapping.read_mapping(there)
        self._fields = {name: FieldKind(kind) for name, kind in kinds.items() if kind in known}
        return self._fields

    def add_alias(self, alias: str) -> tuple[str, ...]:
        """Add an alias to the index unless another index has it, and return the indexes that have it then."""
        if not (owners := self.find_owners(alias)):
            self._requests.request_json("PUT", f"/_alias/{alias}")
            owners = self.find_owners(alias)
            log.info("alias added alias=%s index=%s", alias, self._requests.where)
        return owners

    def move_alias(self, alias: str) -> tuple[str, ...]:
        """Let an alias lead to the index alone, with the filter and routing that it had, and return to which it led."""
        definitions = self.check_alias(alias)
        own = self._requests.index
        if set(definitions) == {own}:
            return (own,)
        kept: dict[str, Any] = dict(next(iter(definitions.values()))) if definitions else {}
        actions = [{"remove": {"index": name, "alias": alias}} for name in definitions if name != own]
        actions.append({"add": {"index": own, "alias": alias, **kept}})
        body = _json.dumps({"actions": actions})
        self._requests.check_answer(self._requests.transport.request("POST", "/_aliases", body))
        log.info("alias moved alias=%s index=%s before=%s", alias, own, ",".join(definitions) or "none")
        return tuple(sorted(definitions))

    def check_alias(self, alias: str) -> dict[str, dict[str, Any]]:
        """Return the indexes that an alias leads to. Raises ConfigurationError for one that cannot be moved: it is the
        name of an index, or leads to several, of which others may be somebody else's."""
        definitions, where = self._read_alias(alias), self._requests.transport.where
        if not definitions and self._requests.transport.request("HEAD", f"/{alias}").status < 300:
            raise ConfigurationError(
                f"'{alias}' is the name of an index at {where}, and no alias can have it: choose another `alias` in the"
                " spec, and let readers search that one"
            )
        if len(set(definitions) - {self._requests.index}) > 1:
            raise ConfigurationError(
                f"alias '{alias}' at {where} leads to several indexes, {', '.join(sorted(definitions))}: let it lead to"
                " the one that is to be replaced"
            )
        return definitions

    def begin_load(self) -> None:
        """Turn refreshes and replicas off, and remember what they were: before it is done, so that it is not lost."""
        names = "index.refresh_interval,index.number_of_replicas"
        answer: dict[str, Any] = self._requests.request_json("GET", f"/_settings/{names}?flat_settings=true")
        present: dict[str, Any] = {
            name: value for entry in answer.values() for name, value in entry["settings"].items()
        }
        before = {name: present.get(name) for name in names.split(",")}
        self._claim(lambda own: {"before_load": before, **own}, "the settings from before a load")
        self._requests.request_json("PUT", "/_settings", _LOAD_SETTINGS)

    def end_load(self) -> None:
        """Restore the settings from before the load, if there are any to restore."""
        meta: dict[str, Any] = (self._load_mapping(is_required=True) or {}).get("_meta", {})
        if (before := meta.get("penstock", {}).get("before_load")) is None:
            return
        self._requests.request_json("PUT", "/_settings", before)
        self._claim(
            lambda own: {name: value for name, value in own.items() if name != "before_load"}, "the end of a load"
        )

    def find_owners(self, alias: str) -> tuple[str, ...]:
        """Return the names of the indexes that an alias leads to."""
        return tuple(sorted(self._read_alias(alias)))

    def _read_alias(self, alias: str) -> dict[str, dict[str, Any]]:
        """Return the indexes that an alias leads to, each with what the alias is defined with."""
        answer = self._requests.transport.request("GET", f"/_alias/{alias}")
        if answer.status == 404:
            return {}
        self._requests.check_answer(answer)
        content: dict[str, Any] = _json.loads(answer.content)
        return {name: entry.get("aliases", {}).get(alias, {}) for name, entry in content.items()}

    def claim_epoch(self, epoch: int) -> None:
        """Remember an epoch in the mapping; raise if there is a higher one, also when somebody wrote it meanwhile."""

        def raise_epoch(own: dict[str, Any]) -> dict[str, Any]:
            check_epoch(epoch, int(own.get("epoch", 0)), self._requests.where)
            return {**own, "epoch": epoch} if epoch else own

        self._claim(raise_epoch, f"epoch {epoch}")

    def remember_load(self, load_id: str) -> None:
        """Remember in the mapping which load has filled the index."""
        self._claim(lambda own: {**own, "load_id": load_id}, f"load {load_id}")

    def read_load_id(self) -> str:
        """Return the id of the load that has filled the index; empty if none has."""
        meta: dict[str, Any] = (self._load_mapping() or {}).get("_meta", {})
        return str(meta.get("penstock", {}).get("load_id", ""))

    def claim_term(self, term: WriterTerm) -> None:
        """Remember a term in the mapping, as the newest of its pipeline; raise if there is a newer one."""

        def raise_term(own: dict[str, Any]) -> dict[str, Any]:
            term.check(_term_of(own, term.pipeline), self._requests.where)
            return {**own, "terms": {**own.get("terms", {}), term.pipeline: term.number}}

        self._claim(raise_term, f"term {term.number}")

    def check_term(self, term: WriterTerm) -> HttpResponse:
        """Raise FencedError if the index was written in a newer term. The answer says whether there is an index."""
        answer = self._requests.request("GET", _OWN_META)
        if answer.status < 300:
            content: dict[str, Any] = _json.loads(answer.content)  # nothing, if the index remembers nothing for us
            seen = max(
                (_term_of(entry["mappings"]["_meta"]["penstock"], term.pipeline) for entry in content.values()),
                default=0,
            )
            term.check(seen, self._requests.where)
            if seen < term.number:  # replaced by a process that has just found out that it may not write
                self.claim_term(term)
        return answer

    def _claim(self, change: Callable[[dict[str, Any]], dict[str, Any]], what: str) -> None:
        """Change what the mapping remembers for us until it does, whoever writes it meanwhile."""
        for _ in range(_CLAIMS):
            meta: dict[str, Any] = (self._load_mapping(is_required=True) or {}).get("_meta", {})
            own: dict[str, Any] = meta.get("penstock", {})
            if (wanted := change(own)) == own:
                return
            self._requests.request_json("PUT", "/_mapping", {"_meta": {**meta, "penstock": wanted}})
        raise SinkUnavailableError(f"{self._requests.where} does not keep {what}: somebody else replaces it")

    def _load_mapping(self, *, is_required: bool = False) -> dict[str, Any] | None:
        """Return the mapping of the index; None if there is no index, and none is required."""
        answer = self._requests.request("GET", "/_mapping")
        if answer.status == 404 and not is_required:
            return None
        self._requests.check_answer(answer)
        mappings: dict[str, Any] = _json.loads(answer.content)
        if len(mappings) != 1:
            raise ConfigurationError(
                f"{self._requests.where} is an alias of {len(mappings)} indexes; name one of them: {sorted(mappings)}"
            )
        (only,) = mappings.values()
        return only["mappings"]

    def _retain_deletes(self) -> None:
        """Raise `gc_deletes` from the default of a minute; a value that somebody set is respected."""
        settings = self._requests.request_json("GET", "/_settings/index.gc_deletes?flat_settings=true")
        if not any(entry["settings"] for entry in settings.values()):
            self._requests.request_json("PUT", "/_settings", {"index.gc_deletes": mapping.GC_DELETES})


def _term_of(own: dict[str, Any], pipeline: str) -> int:
    """Return the newest term of a pipeline that an index knows of, from what it remembers for us; 0 for none."""
    return int(own.get("terms", {}).get(pipeline, 0))
