package io.zerohop.spark;

import java.lang.reflect.InvocationTargetException;
import org.jspecify.annotations.Nullable;

/**
 * Common code of the classes that users name in their configuration. They are compiled for Java 8,
 * on which Spark 3.5 still runs, so that every Java can load them and say what is wanted; all
 * others are compiled for Java 17. An entry class refers to those by their names alone: the
 * verifier may load what a class refers to.
 */
final class EntryClass {
  /** The oldest Java that can load the other classes. */
  private static final int OLDEST_JAVA = 17;

  private EntryClass() {}

  /**
   * Returns its argument where this Java is new enough; so it can stand before a constructor's call
   * of its superclass.
   *
   * @param key the key that named the entry class
   * @throws IllegalStateException if Java is too old, with a message for the user
   */
  static <T> T onNewJava(final String key, final T value) {
    if (!isNewJava()) {
      throw new IllegalStateException(
          "zerohop: "
              + tooOld()
              + "; point JAVA_HOME of the driver and spark.executorEnv.JAVA_HOME at one, or take"
              + " Zerohop's class out of "
              + key);
    }
    return value;
  }

  /** Returns whether this Java can load the classes behind entry classes. */
  static boolean isNewJava() {
    return major(version()) >= OLDEST_JAVA;
  }

  /** Which Java this is, and which one is wanted. */
  static String tooOld() {
    return "this process runs on Java "
        + version()
        + " ("
        + System.getProperty("java.home", "?")
        + "), and Zerohop needs Java "
        + OLDEST_JAVA
        + " or later, which Spark 3.5 supports too";
  }

  private static String version() {
    return System.getProperty("java.specification.version", "");
  }

  /**
   * Makes an object of the class behind an entry class.
   *
   * @param type what it is known as here
   * @param name its class, in or below the package of this one
   * @param parameters those of its public constructor
   */
  static <T> T make(
      final Class<T> type,
      final String name,
      final Class<?>[] parameters,
      final Object... arguments) {
    try {
      final Class<?> made =
          Class.forName("io.zerohop.spark." + name, true, EntryClass.class.getClassLoader());
      return type.cast(made.getConstructor(parameters).newInstance(arguments));
    } catch (final InvocationTargetException e) {
      throw unchecked(e.getCause());
    } catch (final ReflectiveOperationException e) {
      throw new IllegalStateException(
          "zerohop: this jar is incomplete: " + name + " is missing or different; copy it again",
          e);
    }
  }

  /**
   * Makes an object of a class that a jar may lack, by its public constructor without parameters.
   *
   * @param type what it is known as here
   * @param name its class, in or below the package of this one
   * @return null if there is no such class
   */
  static <T> @Nullable T makeIfPresent(final Class<T> type, final String name) {
    try {
      Class.forName("io.zerohop.spark." + name, false, EntryClass.class.getClassLoader());
    } catch (final ClassNotFoundException e) {
      return null;
    }
    return make(type, name, new Class<?>[0]);
  }

  /** A constructor's own failure, as if it had been called directly. */
  private static RuntimeException unchecked(final @Nullable Throwable failure) {
    if (failure instanceof Error) {
      throw (Error) failure;
    }
    return failure instanceof RuntimeException
        ? (RuntimeException) failure
        : new IllegalStateException(failure);
  }

  /** 8 for "1.8", and 0 for what is no version. */
  private static int major(final String version) {
    final String number = version.startsWith("1.") ? version.substring(2) : version;
    try {
      return Integer.parseInt(number);
    } catch (final NumberFormatException e) {
      return 0;
    }
  }
}
