package dev.cipherlane.keys;

import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.LongFunction;
import java.util.function.Predicate;

/**
 * A bounded cache of slots [CL-KEY-013]. What is full gives up its least recently used sixteenth at
 * once, so that the search for it is paid for once by many. Thread-safe.
 *
 * @param <K> what a slot is found by
 * @param <G> the type of grant
 */
final class Slots<K, G extends Grant<G>> {
  private static final int EVICTED_SHARE = 16;

  private final ConcurrentMap<K, Slot<G>> slots = new ConcurrentHashMap<>();
  private final int max;

  Slots(int max) {
    this.max = max;
  }

  /** Finds a slot; null if there is none. */
  Slot<G> find(K key) {
    return slots.get(key);
  }

  /** Finds a slot, or makes it. */
  Slot<G> slot(K key, long now, LongFunction<Slot<G>> make) {
    Slot<G> known = slots.get(key);
    return known != null ? known : add(key, now, make);
  }

  private synchronized Slot<G> add(K key, long now, LongFunction<Slot<G>> make) {
    if (slots.size() >= max) {
      evict();
    }
    return slots.computeIfAbsent(key, absent -> make.apply(now));
  }

  private void evict() {
    record Used<K>(K key, long at) {}
    // The times are read once each: a sort whose keys change while it runs fails.
    List<Used<K>> byUse =
        slots.entrySet().stream()
            .map(entry -> new Used<>(entry.getKey(), entry.getValue().usedAt()))
            .sorted(Comparator.comparingLong(Used::at))
            .toList();
    for (Used<K> used : byUse.subList(0, Math.max(1, byUse.size() / EVICTED_SHARE))) {
      slots.computeIfPresent(used.key(), (key, slot) -> slot.evict() ? null : slot);
    }
  }

  /**
   * Wipes what has ended.
   *
   * @return nanoseconds until the next one ends
   */
  long expire(long now) {
    return slots.values().stream().mapToLong(slot -> slot.expire(now)).min().orElse(Long.MAX_VALUE);
  }

  /** Counts the grants of some kind that are held. */
  long count(Predicate<G> kind) {
    return slots.values().stream().filter(slot -> slot.holds(kind)).count();
  }

  /** Closes all slots, and gives them. */
  List<Slot<G>> close() {
    List<Slot<G>> closed = List.copyOf(slots.values());
    closed.forEach(Slot::close);
    slots.clear();
    return closed;
  }

  int size() {
    return slots.size();
  }
}
