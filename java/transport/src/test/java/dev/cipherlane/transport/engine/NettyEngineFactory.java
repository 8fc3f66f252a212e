package dev.cipherlane.transport.engine;

import io.netty.buffer.ByteBufAllocator;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.security.GeneralSecurityException;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;

/** Netty's engine over BoringSSL as it comes, to compare with. */
public final class NettyEngineFactory extends KeyStoreEngineFactory {
  @Override
  TlsEngines engines(Keys keys, EngineKind kind) {
    try {
      return new TlsEngines(
          EngineKind.JDK_PLAIN,
          new Source(
              SslContextBuilder.forClient()
                  .sslProvider(SslProvider.OPENSSL)
                  .keyManager(keys.keyManager())
                  .trustManager(keys.trustManager())
                  .build(),
              SslContextBuilder.forServer(keys.keyManager())
                  .sslProvider(SslProvider.OPENSSL)
                  .trustManager(keys.trustManager())
                  .build()));
    } catch (GeneralSecurityException | SSLException e) {
      throw new IllegalStateException(e);
    }
  }

  private record Source(SslContext clients, SslContext servers) implements TlsEngines.Source {
    @Override
    public SSLEngine client(String peerHost, int peerPort) {
      return clients.newEngine(ByteBufAllocator.DEFAULT, peerHost, peerPort);
    }

    @Override
    public SSLEngine server(String peerHost, int peerPort) {
      return servers.newEngine(ByteBufAllocator.DEFAULT, peerHost, peerPort);
    }

    @Override
    public void close() {}
  }
}
