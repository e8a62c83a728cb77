"""Spinloom: what a packet-processing (sPIN) NIC does for non-contiguous data.

Importing never fails for a missing optional part; spinloom.core.load() gives the engine.
"""

__version__ = "0.1.0"
