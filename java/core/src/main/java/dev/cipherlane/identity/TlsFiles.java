package dev.cipherlane.identity;

import java.nio.file.Path;

/**
 * PEM files of a client.
 *
 * @param ca certificates that the key service's certificate must chain to
 * @param certificate this client's certificate chain
 * @param key its private key, PKCS #8, not encrypted
 */
public record TlsFiles(Path ca, Path certificate, Path key) {}
