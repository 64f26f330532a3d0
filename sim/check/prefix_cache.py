"""The prefix cache as the checks see it: what was written, what was read, and when.

Written from the contract and apart from the engines. A prefix can be read at an instant if, less than its
time to live before, a call that writes it had its first token, or a call that reads it started.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from sim.contract.provider import PrefixCache


@dataclass(slots=True)
class Prefix:
    """The history of one prefix that the provider has, or is being sent."""

    last_read_ns: int | None = None
    first_tokens_ns: dict[Hashable, int] = field(default_factory=dict)
    """Of each call that writes it, past ones and those to come."""

    def is_readable(self, now_ns: int, ttl_ns: int) -> bool:
        """Return whether it was written or read less than its time to live ago."""
        moments_ns = [*self.first_tokens_ns.values()]
        if self.last_read_ns is not None:
            moments_ns.append(self.last_read_ns)
        return any(now_ns - ttl_ns < at_ns <= now_ns for at_ns in moments_ns)


class CacheHistory:
    """All prefixes of a provider, the one that no call has carried for longest first.

    One whose time is over keeps its place among the `capacity` until it is the first and another needs it.
    """

    def __init__(self, rules: PrefixCache) -> None:
        self.rules = rules
        self.prefixes: dict[int, Prefix] = {}

    def reads(self, prefix: int, now_ns: int) -> bool:
        """Return whether a call that starts now reads the prefix."""
        return prefix in self.prefixes and self.prefixes[prefix].is_readable(now_ns, self.rules.ttl_ns)

    def start(self, prefix: int, call: Hashable, now_ns: int, first_token_ns: int) -> None:
        """Note a call that starts now, its first token due after so long; one that does not read writes."""
        is_read = self.reads(prefix, now_ns)
        one = self.prefixes.pop(prefix, Prefix())
        self.prefixes[prefix] = one
        if is_read:
            one.last_read_ns = now_ns
            return
        # What was written earlier is over for good. What is still being sent is not.
        one.first_tokens_ns = {each: at_ns for each, at_ns in one.first_tokens_ns.items() if at_ns > now_ns}
        one.first_tokens_ns[call] = now_ns + first_token_ns
        if self.rules.capacity is not None and len(self.prefixes) > self.rules.capacity:
            longest_unused = next(iter(self.prefixes))
            del self.prefixes[longest_unused]

    def end(self, prefix: int, call: Hashable, now_ns: int) -> None:
        """Note the end of a call that wrote: without a first token before, it wrote nothing."""
        one = self.prefixes.get(prefix)
        if one is None or one.first_tokens_ns.get(call, now_ns) <= now_ns:
            return
        del one.first_tokens_ns[call]
        if not one.first_tokens_ns:
            del self.prefixes[prefix]
