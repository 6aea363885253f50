"""The life of one capture pipeline: what it is made of, the clients it serves and the status it reports.

instance = Instance(InstanceSettings.model_validate({"source": {...}}))
instance.start()
"""

from penstock.capture.state import InstanceState
from penstock.instance.instance import Instance

__all__ = ["Instance", "InstanceState"]
