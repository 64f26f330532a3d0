// The yardstick in C++: one event list, whole instants, the tables of the compiled engine or latencies alone.
//
//     g++ -O3 -march=native -shared -fPIC event_loop.cpp -o libevent_loop.so
//
// Open arrivals; every request makes `calls` calls at once and joins. Times are int64 nanoseconds. Each
// function returns the number of events. Without tables (`ready` null) only the latencies are written.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

using Time = std::int64_t;
constexpr Time JOINS = Time{1} << 60, ARRIVES = Time{2} << 60;

struct Given {
    const Time *arrival, *service, *join;
    std::int64_t requests, calls, slots;
};

struct Tables {
    Time *latency, *ready, *start, *finish, *slot;
};

// What happens at one instant is ordered: calls end by slot, then joins end, then a request arrives.
struct Event {
    Time time, order;
    bool operator<(const Event &other) const {
        return time < other.time || (time == other.time && order < other.order);
    }
};

template <class Item> class Heap {
    std::vector<Item> items = std::vector<Item>(1024);
    std::size_t size = 0;

  public:
    bool empty() const { return !size; }
    const Item &top() const { return items[0]; }
    void push(const Item item) {
        if (size == items.size()) items.resize(2 * size);
        Item *const heap = items.data();
        std::size_t at = size++;
        while (at) {
            const std::size_t parent = (at - 1) / 2;
            if (!(item < heap[parent])) break;
            heap[at] = heap[parent];
            at = parent;
        }
        heap[at] = item;
    }
    Item pop() {
        Item *const heap = items.data();
        const Item first = heap[0], last = heap[--size];
        std::size_t at = 0;
        for (std::size_t child = 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size && heap[child + 1] < heap[child]) ++child;
            if (!(heap[child] < last)) break;
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = last;
        return first;
    }
};

class Ring {
    std::vector<std::int64_t> items;
    std::size_t first = 0, count = 0;

  public:
    Ring() : items(1024) {}
    bool empty() const { return !count; }
    std::size_t size() const { return count; }
    void push(std::int64_t item) {
        if (count == items.size()) {
            std::vector<std::int64_t> wider(2 * count);
            for (std::size_t at = 0; at < count; ++at) wider[at] = items[(first + at) & (count - 1)];
            items.swap(wider);
            first = 0;
        }
        items[(first + count++) & (items.size() - 1)] = item;
    }
    std::int64_t pop() {
        const std::int64_t item = items[first++ & (items.size() - 1)];
        --count;
        return item;
    }
};

// First come, first served, without caps.
struct InOrder {
    Ring queue;
    InOrder(const Given &, const std::vector<std::int32_t> &) {}
    void wait(std::int64_t place, std::int64_t) { queue.push(place); }
    void released(std::int64_t) {}
    std::int64_t pick(std::int64_t) { return queue.empty() ? -1 : queue.pop(); }
};

// Fair share: a heap of waiting calls for each number of slots that their request holds; what no longer
// belongs there is dropped when it comes up.
struct FairShare {
    const Given &given;
    const std::vector<std::int32_t> &held;
    std::vector<Heap<std::int64_t>> level;
    std::vector<std::uint8_t> waits;
    std::int64_t waiting = 0;

    FairShare(const Given &given, const std::vector<std::int32_t> &held)
        : given(given), held(held), level(given.calls), waits(given.requests * given.calls) {}
    void wait(std::int64_t place, std::int64_t request) {
        waits[place] = 1;
        ++waiting;
        level[held[request]].push(place);
    }
    void released(std::int64_t request) {
        if (held[request] >= given.calls) return;
        for (std::int64_t call = 0; call < given.calls; ++call)
            if (waits[request * given.calls + call]) level[held[request]].push(request * given.calls + call);
    }
    std::int64_t pick(std::int64_t active) {
        if (!waiting) return -1;
        std::int64_t share = given.slots / active, best = -1;
        if (share < 1) share = 1;
        for (std::int64_t count = 0; count < share && count < given.calls; ++count) {
            Heap<std::int64_t> &heap = level[count];
            while (!heap.empty() && !(waits[heap.top()] && held[heap.top() / given.calls] == count)) heap.pop();
            if (!heap.empty() && (best < 0 || heap.top() < best)) best = heap.top();
        }
        if (best >= 0) {
            waits[best] = 0;
            --waiting;
        }
        return best;
    }
};

template <class Queue, bool records> std::int64_t simulate(const Given given, const Tables to) {
    Heap<Event> events;
    Ring free;                                 // which slots are free matters to the tables only,
    std::vector<std::int64_t> on(given.slots); // and so does what runs on each; else a call's end has its place
    std::vector<std::int32_t> held(given.requests), left(given.requests, std::int32_t(given.calls));
    Queue queue(given, held);
    if (records)
        for (std::int64_t slot = 0; slot < given.slots; ++slot) free.push(slot);
    if (given.requests) events.push({given.arrival[0], ARRIVES});
    std::int64_t active = 0, issued = 0, count = 0, idle = given.slots;
    const auto complete = [&](std::int64_t request, Time now) {
        to.latency[request] = now - given.arrival[request];
        --active;
    };
    while (!events.empty()) {
        const Time now = events.top().time;
        do {
            const Event event = events.pop();
            ++count;
            if (event.order < JOINS) {
                if (records) free.push(event.order);
                ++idle;
                const std::int64_t request = (records ? on[event.order] : event.order) / given.calls;
                --held[request];
                queue.released(request);
                if (--left[request]) continue;
                if (given.join[request])
                    events.push({now + given.join[request], JOINS | request});
                else
                    complete(request, now);
            } else if (event.order < ARRIVES) {
                complete(event.order & ~JOINS, now);
            } else {
                const std::int64_t request = issued++;
                ++active;
                if (issued < given.requests) events.push({given.arrival[issued], ARRIVES});
                for (std::int64_t place = request * given.calls; place < issued * given.calls; ++place) {
                    if (records) to.ready[place] = now;
                    queue.wait(place, request);
                }
            }
        } while (!events.empty() && events.top().time == now);
        while (idle) {
            const std::int64_t place = queue.pick(active);
            if (place < 0) break;
            --idle;
            const std::int64_t request = place / given.calls;
            const Time ends = now + given.service[place];
            ++held[request];
            queue.released(request);
            if (records) {
                const std::int64_t slot = free.pop();
                on[slot] = place;
                to.start[place] = now, to.finish[place] = ends, to.slot[place] = slot;
                events.push({ends, slot});
            } else {
                events.push({ends, place});
            }
        }
    }
    return count;
}

// The recursion of Kiefer and Wolfowitz: each call in turn on the slot that is free soonest.
Time time_of(Time free) { return free; }
Time time_of(const Event &free) { return free.time; }

template <class Free> void replace_first(std::vector<Free> &heap, const Free last) {
    const std::size_t size = heap.size();
    std::size_t at = 0;
    for (std::size_t child = 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && heap[child + 1] < heap[child]) ++child;
        if (!(heap[child] < last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
}

template <bool records> std::int64_t recur(const Given given, const Tables to) {
    using Free = std::conditional_t<records, Event, Time>;
    std::vector<Free> free(given.slots);
    if constexpr (records)
        for (std::int64_t slot = 0; slot < given.slots; ++slot) free[slot].order = slot;
    for (std::int64_t request = 0; request < given.requests; ++request) {
        const Time arrival = given.arrival[request];
        Time latest = arrival;
        for (std::int64_t place = request * given.calls; place < (request + 1) * given.calls; ++place) {
            const Time start = std::max(time_of(free[0]), arrival), ends = start + given.service[place];
            latest = std::max(latest, ends);
            if constexpr (records) {
                const std::int64_t slot = free[0].order;
                to.ready[place] = arrival, to.start[place] = start, to.finish[place] = ends, to.slot[place] = slot;
                replace_first(free, Event{ends, slot});
            } else {
                replace_first(free, ends);
            }
        }
        to.latency[request] = latest + given.join[request] - arrival;
    }
    return 2 * given.requests * given.calls;
}

} // namespace

extern "C" {

std::int64_t fifo_loop(const Given *given, const Tables *to) {
    return to->ready ? simulate<InOrder, true>(*given, *to) : simulate<InOrder, false>(*given, *to);
}

std::int64_t fair_share_loop(const Given *given, const Tables *to) {
    return to->ready ? simulate<FairShare, true>(*given, *to) : simulate<FairShare, false>(*given, *to);
}

std::int64_t fifo_recursion(const Given *given, const Tables *to) {
    return to->ready ? recur<true>(*given, *to) : recur<false>(*given, *to);
}
}
