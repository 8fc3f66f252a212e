package dev.cipherlane.benchmarks;

import dev.cipherlane.transport.engine.EngineKind;
import dev.cipherlane.transport.engine.KeyStoreEngineFactory;
import java.util.HashMap;
import java.util.Map;

/**
 * A factory for each kind of engine. Kafka has only settings of its own differ from listener to
 * listener of a broker, and {@value EngineKind#SETTING} is none of them.
 */
public final class EngineFactories {
  private EngineFactories() {}

  /** Gives the name of the class whose engines are of a kind. */
  static String of(EngineKind kind) {
    Class<?> factory =
        switch (kind) {
          case AUTO -> KeyStoreEngineFactory.class;
          case JDK -> Jdk.class;
          case BORINGSSL -> BoringSsl.class;
          case JDK_PLAIN -> JdkPlain.class;
        };
    return factory.getName();
  }

  /** Adds the kind to what Kafka says. */
  private abstract static class OfKind extends KeyStoreEngineFactory {
    private final EngineKind kind;

    OfKind(EngineKind kind) {
      this.kind = kind;
    }

    @Override
    public void configure(Map<String, ?> configs) {
      Map<String, Object> all = new HashMap<>(configs);
      all.put(EngineKind.SETTING, kind.toString());
      super.configure(all);
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
