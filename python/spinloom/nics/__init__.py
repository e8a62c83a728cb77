"""Simulated NICs: profiles, machines, datatypes, strategies, and cells that are simulated and checked."""
