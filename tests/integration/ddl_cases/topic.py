"""How cases are written: a topic is a text of statements, one a line; a line that begins with spaces goes on.

`mariadb mysql9: CREATE …` is for these servers only. `{db}` is the topic's own database, in use from the beginning.
"""

import re
from dataclasses import dataclass

SERVERS = ("mariadb", "mysql57", "mysql80", "mysql9")
_ONLY = re.compile(rf"((?:(?:{'|'.join(SERVERS)}) ?)+): (.*)", re.DOTALL)


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
            elif server in only[1].split():
                chosen.append(only[2])
        return chosen
