"""How cases are written: a topic is a text of statements, one a line; a line that begins with spaces continues the one
before.

`mariadb mysql9: CREATE …` is for these servers only; `mariadb` counts for MariaDB 11 as well, `mariadb10` does not.
`{db}` is the topic's own database, in use from the beginning.
"""

import re
from dataclasses import dataclass

SERVERS = ("mariadb", "mariadb11", "mysql57", "mysql80", "mysql9")
_ONLY = re.compile(rf"((?:(?:{'|'.join((*SERVERS, 'mariadb10'))}) ?)+): (.*)", re.DOTALL)
_ALSO = {"mariadb11": ("mariadb",), "mariadb": ("mariadb10",)}


@dataclass(frozen=True)
class Topic:
    name: str
    text: str

    def statements(self, server: str) -> list[str]:
        lines = re.sub(r"\n[ ]+", "\n    ", self.text.strip("\n")).replace("\n    ", "\0").split("\n")
        chosen: list[str] = []
        for line in filter(None, lines):
            statement = line.replace("\0", "\n    ")
            only = _ONLY.fullmatch(statement)
            if only is None:
                chosen.append(statement)
            elif not {server, *_ALSO.get(server, ())}.isdisjoint(only[1].split()):
                chosen.append(only[2])
        return chosen
