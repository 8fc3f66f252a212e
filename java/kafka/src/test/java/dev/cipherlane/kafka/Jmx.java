package dev.cipherlane.kafka;

import java.lang.management.ManagementFactory;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.ObjectName;

/** What a client shows in JMX of Cipherlane. */
final class Jmx {
  private Jmx() {}

  /** A number of a consumer; {@code ,code=...} may follow its client id. */
  static long consumer(String clientId, String name) {
    return read("kafka.consumer:type=cipherlane,client-id=" + clientId, name);
  }

  static long producer(String clientId, String name) {
    return read("kafka.producer:type=cipherlane,client-id=" + clientId, name);
  }

  private static long read(String bean, String name) {
    try {
      Object value =
          ManagementFactory.getPlatformMBeanServer().getAttribute(new ObjectName(bean), name);
      return ((Number) value).longValue();
    } catch (InstanceNotFoundException e) {
      return -1;
    } catch (JMException e) {
      throw new AssertionError(e);
    }
  }
}
