"""The servers the tests run on; `python -m tests.services` fetches them, the fixtures of conftest.py start them."""

from tests.services.canal_client import JAVA_CLIENT, PYTHON_CLIENT
from tests.services.chromium import Chromium
from tests.services.elasticsearch import ELASTICSEARCH_7, ELASTICSEARCH_9, ElasticsearchService
from tests.services.mariadb import MariaDBService, NewestMariaDBService
from tests.services.mysql import MYSQL_5_7, MYSQL_8_0, MYSQL_9
from tests.services.opensearch import OPENSEARCH_1, OPENSEARCH_3, OpenSearchService
from tests.services.service import Service
from tests.services.zookeeper import ZooKeeperService

# In the order in which they are fetched.
_ALL: tuple[Service, ...] = (
    MariaDBService(),
    OpenSearchService(),
    MYSQL_8_0,
    MYSQL_5_7,
    MYSQL_9,
    NewestMariaDBService(),
    ZooKeeperService(),
    ElasticsearchService(),
    JAVA_CLIENT,
    PYTHON_CLIENT,
    Chromium(),
    OpenSearchService(OPENSEARCH_1),
    OpenSearchService(OPENSEARCH_3),
    ElasticsearchService(ELASTICSEARCH_7),
    ElasticsearchService(ELASTICSEARCH_9),
)
SERVICES = {service.name: service for service in _ALL}

__all__ = ["SERVICES", "Service"]
