"""A load generator that costs little: prepared requests over kept-alive connections, only status and length of an answer are read.

`closed` keeps a number of clients busy, each asking again when it was answered: the rate that a server can sustain. `opened` sends at a
fixed rate whatever comes back, as the world does; a latency counts from the moment at which the request was due.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

TICK = 0.002  # Seconds between two looks at what is due.
PATIENCE = 60.0  # Seconds after which an answer counts as missing.


@dataclass
class Seen:
    """What came back: status → number, 0 for a broken connection; seconds of the answers with status 200."""

    seconds: float = 0.0
    statuses: Counter = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    n_sent: int = 0

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def n_failures(self) -> int:
        return self.n_sent - self.statuses[200] - self.statuses[429]

    def percentile(self, p: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(p * len(ordered)))]


class Connection(asyncio.Protocol):
    """One request at a time; `answered(connection, status, due)` is called when its answer is complete."""

    def __init__(self, answered):
        self.answered, self.buffer, self.due = answered, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def send(self, request: bytes, due: float):
        self.due = due
        self.transport.write(request)

    def data_received(self, data: bytes):
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(body) >= length:
            due, self.buffer, self.due = self.due, b"", None
            self.answered(self, int(head[9:12]), due)

    def connection_lost(self, error):
        if self.due is not None:
            self.answered(None, 0, self.due)


def request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def connect(port: int, answered) -> Connection:
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(lambda: Connection(answered), "127.0.0.1", port))[1]


async def closed(port: int, requests: list[bytes], n_clients: int, seconds: float) -> Seen:
    """`n_clients` at a time for `seconds`; what is in flight at the end is waited for but not counted."""
    seen, clock = Seen(seconds), time.perf_counter
    is_over, idle = False, asyncio.Queue()

    def ask(connection):
        connection.send(requests[seen.n_sent % len(requests)], clock())
        seen.n_sent += 1

    def answered(connection, status, due):
        if is_over:
            seen.n_sent -= 1
            idle.put_nowait(connection)
            return
        seen.statuses[status] += 1
        if status == 200:
            seen.latencies.append(clock() - due)
        ask(connection)

    connections = [await connect(port, answered) for _ in range(n_clients)]
    start = clock()
    for connection in connections:
        ask(connection)
    await asyncio.sleep(seconds)
    is_over, seen.seconds = True, clock() - start
    for _ in connections:
        (await asyncio.wait_for(idle.get(), PATIENCE)).transport.close()
    return seen


async def opened(port: int, requests: list[bytes], rate: float, seconds: float) -> Seen:
    """`rate` requests a second for `seconds`, over as many connections as are needed."""
    seen, clock = Seen(seconds), time.perf_counter
    idle, every, in_flight = [], [], 0

    def answered(connection, status, due):
        nonlocal in_flight
        in_flight -= 1
        seen.statuses[status] += 1
        if status == 200:
            seen.latencies.append(clock() - due)
        if connection is not None:
            idle.append(connection)

    start = clock()
    while (now := clock() - start) < seconds:
        while seen.n_sent < now * rate:
            if not idle:
                every.append(await connect(port, answered))
                idle.append(every[-1])
            in_flight += 1
            idle.pop().send(requests[seen.n_sent % len(requests)], start + seen.n_sent / rate)
            seen.n_sent += 1
        await asyncio.sleep(TICK)
    end = clock() + PATIENCE
    while in_flight and clock() < end:
        await asyncio.sleep(TICK)
    for connection in every:
        connection.transport.close()
    return seen
