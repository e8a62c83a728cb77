"""What NAME.c must leave behind: `spinloom handler` compares byte by byte.

expect() gets the message's bytes and how many of them were put, and returns what it knows of "entry",
"state", "reply" and "handler_memory" (bytes, from their first byte on) and "counter" (messages counted).
"""


def expect(message: bytes, count: int) -> dict:
    return {"reply": message.swapcase(), "counter": count}
