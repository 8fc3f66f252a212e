package dev.cipherlane.kafka;

import dev.cipherlane.Numbers;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Metrics;
import io.micrometer.core.instrument.Tags;
import java.util.ArrayList;
import java.util.List;

/**
 * A client's numbers in Micrometer's global registry, where the application has Micrometer: {@code
 * cipherlane.records.encrypted} and so on, with the tags {@code client.id} and, of failures, {@code
 * code}. Where Micrometer is missing, making one is a {@link LinkageError}.
 */
final class MicrometerNumbers implements AutoCloseable {
  private static final String TOTAL = "-total";

  /** Held here, because meters hold them weakly. */
  private final List<Numbers.Figure> figures;

  private final List<Meter> meters = new ArrayList<>();

  MicrometerNumbers(String clientId, Numbers numbers) {
    figures = numbers.figures();
    figures.forEach(figure -> meters.add(register(figure, Tags.of("client.id", clientId))));
  }

  private static Meter register(Numbers.Figure figure, Tags client) {
    String name = "cipherlane." + figure.name().replace(TOTAL, "").replace('-', '.');
    Tags tags = client;
    for (var tag : figure.tags().entrySet()) {
      tags = tags.and(tag.getKey(), tag.getValue());
    }
    if (figure.name().endsWith(TOTAL)) {
      return FunctionCounter.builder(name, figure, f -> f.value().getAsDouble())
          .tags(tags)
          .description(figure.description())
          .register(Metrics.globalRegistry);
    }
    return Gauge.builder(name, figure, f -> f.value().getAsDouble())
        .tags(tags)
        .description(figure.description())
        .register(Metrics.globalRegistry);
  }

  @Override
  public void close() {
    meters.forEach(Metrics.globalRegistry::remove);
  }
}
