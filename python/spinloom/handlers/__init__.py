"""Handlers: the compiler, runs in the simulator, what one costs."""
