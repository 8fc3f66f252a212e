package dev.cipherlane.keys;

import java.time.Duration;

/**
 * Limits of the caches.
 *
 * @param deadline the longest that a caller waits ({@code cipherlane.keys.deadline.ms})
 * @param backoff least time between two requests for the same thing after a failure ({@code
 *     cipherlane.keys.retry.backoff.ms})
 * @param max data keys, and topics, held at once ({@code cipherlane.keys.cache.max})
 */
public record KeyLimits(Duration deadline, Duration backoff, int max) {}
