"""Recorded programs: our own traces, and those of other tools."""
