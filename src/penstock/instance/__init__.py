"""The life cycle of one capture pipeline: its components, the clients it serves and the status it reports."""

from penstock.capture.state import InstanceState
from penstock.instance.instance import Instance

__all__ = ["Instance", "InstanceState"]
