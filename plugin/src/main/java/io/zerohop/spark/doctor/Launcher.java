package io.zerohop.spark.doctor;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;

/**
 * Starts the jar's commands. Zerohop's classes log by an interface that Spark brings. Where Spark
 * is not on the class path they are loaded once more, with Spark's jars beside them if an
 * installation is named, and else with the interface alone, which then logs nothing.
 */
public final class Launcher {
  static final String SPARK_HOME_OPTION = "--spark-home";

  private static final long EXIT_MILLIS = 5_000;
  private static final String COMMANDS = "io.zerohop.spark.Commands";
  private static final String LOGGING = "org.slf4j.LoggerFactory";

  private Launcher() {}

  /** Runs a command and ends the process with its status, whatever threads are left. */
  public static void main(final String[] arguments) throws Throwable {
    final int status = run(arguments);
    // A library's exit hook may wait for what a check could not end.
    final Thread last = new Thread(() -> halt(status), "doctor-exit");
    last.setDaemon(true);
    last.start();
    System.exit(status);
  }

  private static void halt(final int status) {
    try {
      Thread.sleep(EXIT_MILLIS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(status);
  }

  private static int run(final String[] arguments) throws Throwable {
    if (isThere(LOGGING)) {
      return run(Launcher.class.getClassLoader(), arguments);
    }
    try (AloneLoader loader = AloneLoader.of(sparkHome(arguments))) {
      Thread.currentThread().setContextClassLoader(loader);
      return run(loader, arguments);
    }
  }

  private static int run(final ClassLoader loader, final String[] arguments) throws Throwable {
    final Method run = loader.loadClass(COMMANDS).getDeclaredMethod("run", String[].class);
    run.setAccessible(true);
    try {
      return (int) run.invoke(null, (Object) arguments);
    } catch (final InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private static boolean isThere(final String name) {
    try {
      Class.forName(name, false, Launcher.class.getClassLoader());
      return true;
    } catch (final ClassNotFoundException e) {
      return false;
    }
  }

  /**
   * Returns the installation that the command line names, before that can be parsed; null if it
   * names none, or one that may not be loaded. Code that an environment variable names is not
   * loaded.
   */
  private static Path sparkHome(final String[] arguments) {
    String home = "";
    for (int i = 0; i < arguments.length; i++) {
      if (arguments[i].startsWith(SPARK_HOME_OPTION + "=")) {
        home = arguments[i].substring(SPARK_HOME_OPTION.length() + 1);
      } else if (arguments[i].equals(SPARK_HOME_OPTION) && i + 1 < arguments.length) {
        home = arguments[i + 1];
      }
    }
    final boolean refused =
        !home.isEmpty() && new ForeignCode().refusalOfSpark(Path.of(home)) != null;
    return home.isEmpty() || refused ? null : Path.of(home); // DoctorCommand says why.
  }
}
