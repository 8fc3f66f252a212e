package dev.cipherlane.identity;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * Shows an identity in JMX until it is closed. Brokers, and clients with mutual TLS alone, have no
 * other numbers of Cipherlane. Thread-safe.
 */
public final class IdentityBean implements IdentityMXBean, AutoCloseable {
  private static final System.Logger LOG = System.getLogger(IdentityBean.class.getName());
  private static final AtomicLong LAST_ID = new AtomicLong();

  private final Identity identity;
  private final String name = "dev.cipherlane:type=identity,id=" + LAST_ID.incrementAndGet();

  /**
   * Begins to show it.
   *
   * @param identity what is shown
   */
  public IdentityBean(Identity identity) {
    this.identity = identity;
    try {
      ManagementFactory.getPlatformMBeanServer().registerMBean(this, new ObjectName(name));
    } catch (JMException e) { // nothing fails because it cannot be watched
      LOG.log(System.Logger.Level.WARNING, "this identity is not in JMX", e);
    }
  }

  @Override
  public String getPrincipal() {
    return identity.secondsLeft() > 0
        ? PrincipalName.of(identity.credentials().leaf()).orElse("")
        : "";
  }

  @Override
  public double getCertificateSecondsLeft() {
    return identity.secondsLeft();
  }

  @Override
  public void close() {
    try {
      ManagementFactory.getPlatformMBeanServer().unregisterMBean(new ObjectName(name));
    } catch (JMException e) {
      LOG.log(System.Logger.Level.DEBUG, "this identity was not in JMX", e);
    }
  }
}
