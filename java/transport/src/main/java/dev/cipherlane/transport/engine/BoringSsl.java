// The only class that is loaded with Netty's: where Netty is missing, it is never reached.
package dev.cipherlane.transport.engine;

import io.netty.buffer.ByteBufAllocator;
import io.netty.handler.ssl.OpenSsl;
import io.netty.handler.ssl.OpenSslContextOption;
import io.netty.handler.ssl.ReferenceCountedOpenSslEngine;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.netty.util.ReferenceCountUtil;
import java.lang.ref.Cleaner;
import java.security.GeneralSecurityException;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.TrustManager;

/** Netty's engines over BoringSSL. Thread-safe. */
final class BoringSsl implements TlsEngines.Source {
  private final SslContext clients;
  private final SslContext servers;

  private final Cleaner.Cleanable nativeMemory;

  private BoringSsl(SslContext clients, SslContext servers) {
    this.clients = clients;
    this.servers = servers;
    nativeMemory =
        NativeEngine.CLEANER.register(
            this,
            () -> {
              ReferenceCountUtil.release(clients);
              ReferenceCountUtil.release(servers);
            });
  }

  /** Tells whether the native library is there and works; throws a LinkageError if Netty is not. */
  static boolean loads() {
    return OpenSsl.isAvailable() && OpenSsl.versionString().equals("BoringSSL");
  }

  static BoringSsl source(KeyManager keys, TrustManager trust) throws GeneralSecurityException {
    SslContextBuilder clients =
        SslContextBuilder.forClient()
            .keyManager(keys)
            .endpointIdentificationAlgorithm(null); // each engine's parameters say
    return new BoringSsl(
        context(clients, trust), context(SslContextBuilder.forServer(keys), trust));
  }

  /**
   * Without tasks: Kafka would run them in the same thread, and Netty's engine then waits for an
   * unwrap of nothing, which Kafka before 3.7.1 does not make (KAFKA-16305).
   */
  private static SslContext context(SslContextBuilder builder, TrustManager trust)
      throws GeneralSecurityException {
    try {
      return builder
          .sslProvider(SslProvider.OPENSSL_REFCNT)
          .option(OpenSslContextOption.USE_TASKS, false)
          .trustManager(trust)
          .build();
    } catch (SSLException e) {
      throw new GeneralSecurityException(e.getMessage(), e);
    }
  }

  @Override
  public SSLEngine client(String peerHost, int peerPort) {
    return engine(clients, peerHost, peerPort);
  }

  @Override
  public SSLEngine server(String peerHost, int peerPort) {
    return engine(servers, peerHost, peerPort);
  }

  private static SSLEngine engine(SslContext context, String peerHost, int peerPort) {
    return new NativeEngine(
        (ReferenceCountedOpenSslEngine)
            context.newEngine(ByteBufAllocator.DEFAULT, peerHost, peerPort));
  }

  @Override
  public void close() {
    nativeMemory.clean();
  }
}
