package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.kafka.RecordRefusedException;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;

/** Spring Kafka: a template and a listener; properties decide. */
@ExtendWith(Real.class)
class SpringTest {
  private static final String TOPIC = "spring-" + UUID.randomUUID();

  /** What the listener got. */
  static final BlockingQueue<String> HEARD = new LinkedBlockingQueue<>();

  /** An application, which knows nothing of encryption but for its properties. */
  @Configuration
  @EnableKafka
  static class Application {
    @Bean
    DefaultKafkaProducerFactory<byte[], byte[]> producerFactory() {
      return producerFactory(Real.cipherlane());
    }

    static DefaultKafkaProducerFactory<byte[], byte[]> producerFactory(
        Map<String, Object> cipherlane) {
      Map<String, Object> settings = Real.producing();
      settings.putAll(cipherlane);
      return new DefaultKafkaProducerFactory<>(settings);
    }

    @Bean
    KafkaTemplate<byte[], byte[]> template(
        DefaultKafkaProducerFactory<byte[], byte[]> producerFactory) {
      return new KafkaTemplate<>(producerFactory);
    }

    @Bean
    ConcurrentKafkaListenerContainerFactory<byte[], byte[]> kafkaListenerContainerFactory() {
      var factory = new ConcurrentKafkaListenerContainerFactory<byte[], byte[]>();
      factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(Real.consuming()));
      return factory;
    }

    @Bean
    Listener listener() {
      return new Listener();
    }
  }

  /** As every listener. */
  static class Listener {
    @KafkaListener(
        topics = "#{T(dev.cipherlane.integration.SpringTest).topic()}",
        groupId = "spring")
    void hear(byte[] value) {
      HEARD.add(Real.string(value));
    }
  }

  /** Called by the listener's annotation. */
  public static String topic() {
    return TOPIC;
  }

  @Test
  @SuppressWarnings("unchecked")
  void listenerHearsWhatTheTemplateSent() throws Exception {
    List<String> values = List.of("canary " + UUID.randomUUID(), "canary " + UUID.randomUUID());
    try (var application = new AnnotationConfigApplicationContext(Application.class)) {
      KafkaTemplate<byte[], byte[]> template = application.getBean(KafkaTemplate.class);
      for (String value : values) {
        template.send(TOPIC, Real.bytes(value)).get();
      }
      assertThat(HEARD.poll(30, TimeUnit.SECONDS)).isEqualTo(values.get(0));
      assertThat(HEARD.poll(30, TimeUnit.SECONDS)).isEqualTo(values.get(1));
    }
    Real.assertEnvelopes(TOPIC, 2);
    Real.assertNotStored(values);
  }

  @Test
  void templateToldNoThrows() { // CL-KAF-001
    var factory = Application.producerFactory(Real.strangersSettings());
    KafkaTemplate<byte[], byte[]> template = new KafkaTemplate<>(factory);
    assertThatThrownBy(() -> template.send(TOPIC, Real.bytes("no")).get())
        .hasStackTraceContaining(RecordRefusedException.class.getName())
        .hasStackTraceContaining("not-authorized");
    factory.destroy();
  }
}
