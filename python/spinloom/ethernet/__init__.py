"""The live Ethernet NIC and SLMP, from the command line and from Python."""
