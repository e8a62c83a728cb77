"""What NAME.c must leave behind: `spinloom handler` compares byte by byte.

expect() gets the message's bytes and how many of them were put, and returns what it knows of "entry",
"state", "reply" and "handler_memory" (bytes, from their first byte on) and "counter" (messages counted).
Where the order is the handler's choice, "records" says how long a record is: the entry's are compared sorted.
"""

import struct

LIMIT = 0x20000000


def expect(message: bytes, count: int) -> dict:
    whole = message[: len(message) // 8 * 8]
    records = [whole[at : at + 8] for at in range(0, len(whole), 8)]
    taken = [record for record in records if struct.unpack("<II", record)[0] < LIMIT] * count
    return {
        "entry": b"".join(taken),
        "records": 8,
        "state": len(taken).to_bytes(8, "little"),
        "counter": count,
    }
