package dev.cipherlane.keys;

import dev.cipherlane.cipher.KeyId;

/**
 * What was encrypted under a data key since it was last reported.
 *
 * @param kid the data key's id
 * @param records how many records
 * @param bytes how many bytes of plaintext
 */
public record Usage(KeyId kid, long records, long bytes) {}
