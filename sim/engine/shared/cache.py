"""The provider's prefix cache: a prefix can be read once a call that writes it has begun to answer."""

from dataclasses import dataclass, field

from sim.contract.provider import PrefixCache

Writer = tuple[int, int, int]
"""The attempt that writes a prefix: (request, call, attempt)."""


@dataclass(slots=True)
class Entry:
    """A prefix: when a call with it last started, and when each call that writes it answers first."""

    used_ns: int = 0
    readable_ns: dict[Writer, int] = field(default_factory=dict)

    def is_fresh(self, now_ns: int, ttl_ns: int) -> bool:
        """Return whether it can be read: it has been written, and used since less than `ttl_ns` ago."""
        written_ns = [readable_ns for readable_ns in self.readable_ns.values() if readable_ns <= now_ns]
        return bool(written_ns) and now_ns < max(self.used_ns, *written_ns) + ttl_ns


class Cache:
    """Prefixes by key, the least recently used first; each is kept for a time after its last use."""

    def __init__(self, cache: PrefixCache) -> None:
        self.ttl_ns = cache.ttl_ns
        self.capacity = cache.capacity
        self.entries: dict[int, Entry] = {}

    def holds(self, prefix: int, now_ns: int) -> bool:
        """Return whether a call that starts now would read the prefix."""
        entry = self.entries.get(prefix)
        return entry is not None and entry.is_fresh(now_ns, self.ttl_ns)

    def readable_after_ns(self, prefix: int, now_ns: int) -> int | None:
        """Return how long until a call that writes the prefix answers first; None where none does."""
        entry = self.entries.get(prefix)
        coming_ns = [at_ns for at_ns in entry.readable_ns.values() if at_ns > now_ns] if entry else []
        return min(coming_ns) - now_ns if coming_ns else None

    def use(self, prefix: int, writer: Writer, now_ns: int, first_token_ns: int) -> bool:
        """Start a call with a prefix; return whether it reads it. One that does not writes it."""
        reads = self.holds(prefix, now_ns)
        entry = self.entries[prefix] = self.entries.pop(prefix, Entry())
        entry.used_ns = now_ns
        if not reads:
            # What was written before has been forgotten; what others are writing now is still to come.
            pending = {other: at_ns for other, at_ns in entry.readable_ns.items() if at_ns > now_ns}
            entry.readable_ns = pending | {writer: now_ns + first_token_ns}
            if self.capacity is not None and len(self.entries) > self.capacity:
                del self.entries[next(iter(self.entries))]
        return reads

    def abandon(self, prefix: int, writer: Writer, now_ns: int) -> None:
        """Forget what an attempt was writing, if it ends before its first token."""
        entry = self.entries.get(prefix)
        if entry is not None and entry.readable_ns.get(writer, now_ns) > now_ns:
            del entry.readable_ns[writer]
            if not entry.readable_ns:
                del self.entries[prefix]
