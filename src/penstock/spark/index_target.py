"""Where an index is: what a process needs to open it, here or on an executor."""

from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.search.index import SearchIndex
from penstock.search.opening import locate_generation
from penstock.search.writer_term import WriterTerm


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """The address of an index: the URL of a search server, or the folder of an embedded index.

    index = IndexTarget("http://127.0.0.1:9200", "product").open()
    """

    address: str = field(repr=False)  # it may have a password
    name: str = ""
    api_key: str | None = field(default=None, repr=False)
    ca_certs: str | None = None  # a file, on the driver and every executor

    @property
    def is_shared(self) -> bool:
        """Return whether several processes may write to it."""
        return "://" in self.address

    @property
    def alias_owner(self) -> str:
        """Return the name of the index as an alias knows it: that of the index, or of its folder."""
        return self.name if self.is_shared else Path(self.address).name

    def of_index(self, name: str, *, is_alone: bool) -> "IndexTarget":
        """Return the place of one index; several embedded ones have a folder each."""
        address = self.address if self.is_shared or is_alone else str(Path(self.address) / name)
        return replace(self, address=address, name=name)

    def of_generation(self, generation: str) -> "IndexTarget":
        """Return the place of one generation of the index; the empty one is the index with the name itself."""
        address, name = locate_generation(self.address, self.name, generation)
        return replace(self, address=address, name=name)

    def behind_alias(self, alias: str | None) -> "IndexTarget":
        """Return the place of the index to which an alias leads, if it leads to one; else this one."""
        if alias is None:
            return self
        if not self.is_shared:
            link = Path(self.address).absolute().parent / alias
            return replace(self, address=str(link), name=alias) if link.is_symlink() else self
        with closing(self.open()) as index:
            owners = index.find_owners(alias)
        return replace(self, name=owners[0]) if len(owners) == 1 else self

    def open(self, term: WriterTerm | None = None, *, read_only: bool = False) -> SearchIndex:
        """Open the index; with a term, what is opened writes nothing after that has ended. An embedded index has one
        writer, beside which others open it `read_only`."""
        if self.is_shared:
            from penstock.search.http import HttpIndex  # noqa: PLC0415 - needs the extra `search`

            return HttpIndex.open(self.address, self.name, api_key=self.api_key, ca_certs=self.ca_certs, term=term)
        from penstock.search.embedded import EmbeddedIndex  # noqa: PLC0415 - needs the extra `embedded`

        return EmbeddedIndex.open(self.address, read_only=read_only, term=term)
