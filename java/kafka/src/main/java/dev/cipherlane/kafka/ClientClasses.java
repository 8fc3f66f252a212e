package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.FailureAction;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;

/** What stands in a client's properties about classes, and how mistakes there are told. */
final class ClientClasses {
  private ClientClasses() {}

  /** The name of a class that a setting gives, as a class or as text; empty if it is not set. */
  static String name(Map<String, ?> settings, String setting) {
    Object value = settings.get(setting);
    if (value == null) {
      return "";
    }
    return value instanceof Class<?> type ? type.getName() : value.toString().strip();
  }

  /** Makes what a required setting names. */
  static <T> T instance(Map<String, ?> settings, String setting, Class<T> type) {
    String name = name(settings, setting);
    if (name.isEmpty()) {
      throw invalid(setting, "required: the class that it wraps");
    }
    try {
      Class<?> found =
          settings.get(setting) instanceof Class<?> given
              ? given
              : Class.forName(name, true, loader());
      return type.cast(found.getDeclaredConstructor().newInstance());
    } catch (ReflectiveOperationException | ClassCastException e) {
      String why = name + " is no " + type.getSimpleName() + " that can be made";
      throw invalid(setting, why, e);
    }
  }

  private static ClassLoader loader() {
    ClassLoader context = Thread.currentThread().getContextClassLoader();
    return context != null ? context : ClientClasses.class.getClassLoader();
  }

  /**
   * Opens what a class holds that Kafka configures. When that fails, what was opened until then is
   * closed, and a mistake in the settings is told as Kafka tells it.
   */
  static void open(Runnable open, Runnable close) {
    try {
      open.run();
    } catch (CipherlaneException e) {
      close.run();
      throw invalid(e);
    } catch (RuntimeException e) {
      close.run();
      throw e;
    }
  }

  /** Refuses to be the class for record keys, which the setting asks for [CL-KAF-006]. */
  static void refuseKeys(boolean isKey, String setting) {
    if (isKey) {
      throw invalid(setting, "record keys are never encrypted");
    }
  }

  /** Refuses the failure actions that the reader does not know. */
  static Configuration failingOnly(Configuration configuration) {
    if (configuration.reading().action() != FailureAction.FAIL) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID,
          "setting " + Configuration.FAILURE_ACTION + ": takes fail, and nothing else here");
    }
    return configuration;
  }

  static ConfigException invalid(String setting, String why) {
    return invalid(setting, why, null);
  }

  private static ConfigException invalid(String setting, String why, Exception cause) {
    return invalid(
        new CipherlaneException(
            ErrorCode.CONFIGURATION_INVALID, "setting " + setting + ": " + why, cause));
  }

  /** As Kafka tells mistakes in settings. */
  static ConfigException invalid(CipherlaneException error) {
    ConfigException invalid = new ConfigException(error.getMessage());
    invalid.initCause(error);
    return invalid;
  }
}
