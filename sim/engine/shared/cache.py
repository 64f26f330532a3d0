"""The provider's prefix cache: a prefix can be read once a call that writes it has begun to answer."""

from dataclasses import dataclass, field

from sim.engine.shared.interface import PrefixCache

Writer = tuple[int, int, int]
"""The attempt that writes a prefix: (request, call, attempt)."""


@dataclass(slots=True)
class Entry:
    """A prefix and when each of its writers answers first; `used_ns` is its last read, or its last write."""

    used_ns: int
    readable_ns: dict[Writer, int] = field(default_factory=dict)

    def is_readable(self, now_ns: int) -> bool:
        """Return whether a writer has begun to answer."""
        return any(readable_ns <= now_ns for readable_ns in self.readable_ns.values())

    def fresh_until_ns(self, ttl_ns: int) -> int:
        """Return when it is forgotten, unless it is read before."""
        return max(self.used_ns, min(self.readable_ns.values())) + ttl_ns


class Cache:
    """Prefixes by key, each kept for a time after its last use; the least recently used goes first."""

    def __init__(self, cache: PrefixCache) -> None:
        self.ttl_ns = cache.ttl_ns
        self.capacity = cache.capacity
        self.entries: dict[int, Entry] = {}

    def holds(self, prefix: int, now_ns: int) -> bool:
        """Return whether a call that starts now would read the prefix."""
        entry = self.entries.get(prefix)
        return entry is not None and entry.is_readable(now_ns) and now_ns < entry.fresh_until_ns(self.ttl_ns)

    def use(self, prefix: int, writer: Writer, now_ns: int, first_token_ns: int) -> bool:
        """Start a call with a prefix; return whether it reads it. One that does not writes it."""
        if self.holds(prefix, now_ns):
            self.entries[prefix].used_ns = now_ns
            return True
        entry = self.entries.get(prefix)
        if entry is None or entry.is_readable(now_ns):
            entry = self.entries[prefix] = Entry(now_ns)
        entry.used_ns = now_ns
        entry.readable_ns[writer] = now_ns + first_token_ns
        self._evict()
        return False

    def abandon(self, prefix: int, writer: Writer, now_ns: int) -> None:
        """Forget what an attempt was writing, if it ends before its first token."""
        entry = self.entries.get(prefix)
        if entry is not None and entry.readable_ns.get(writer, now_ns) > now_ns:
            del entry.readable_ns[writer]
            if not entry.readable_ns:
                del self.entries[prefix]

    def _evict(self) -> None:
        if self.capacity is not None and len(self.entries) > self.capacity:
            del self.entries[min(self.entries, key=lambda prefix: (self.entries[prefix].used_ns, prefix))]
