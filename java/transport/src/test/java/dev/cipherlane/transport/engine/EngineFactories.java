package dev.cipherlane.transport.engine;

/**
 * A factory for each kind of engine, for brokers of tests: Kafka has only settings of its own
 * differ from listener to listener, and {@value EngineKind#SETTING} is none of them.
 */
public final class EngineFactories {
  private EngineFactories() {}

  /** Gives the name of the class whose engines are of a kind. */
  public static String of(EngineKind kind) {
    Class<?> factory =
        switch (kind) {
          case AUTO -> KeyStoreEngineFactory.class;
          case JDK -> Jdk.class;
          case BORINGSSL -> BoringSsl.class;
          case JDK_PLAIN -> JdkPlain.class;
        };
    return factory.getName();
  }

  /** Of one kind, whatever the settings say; never of another in its place. */
  private abstract static class OfKind extends KeyStoreEngineFactory {
    private final EngineKind kind;

    OfKind(EngineKind kind) {
      this.kind = kind;
    }

    @Override
    TlsEngines engines(Keys keys, EngineKind ignored) {
      TlsEngines engines = super.engines(keys, kind);
      if (engines.kind() != kind) {
        throw new IllegalStateException(kind + " is missing");
      }
      return engines;
    }
  }

  /** Of {@link EngineKind#JDK}. */
  public static final class Jdk extends OfKind {
    /** For Kafka. */
    public Jdk() {
      super(EngineKind.JDK);
    }
  }

  /** Of {@link EngineKind#BORINGSSL}. */
  public static final class BoringSsl extends OfKind {
    /** For Kafka. */
    public BoringSsl() {
      super(EngineKind.BORINGSSL);
    }
  }

  /** Of {@link EngineKind#JDK_PLAIN}. */
  public static final class JdkPlain extends OfKind {
    /** For Kafka. */
    public JdkPlain() {
      super(EngineKind.JDK_PLAIN);
    }
  }
}
