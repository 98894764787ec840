package io.zerohop.spark;

import java.lang.reflect.InvocationTargetException;

/**
 * The jar's main class: {@code java -jar zerohop-spark.jar doctor}. An {@link EntryClass}; the
 * command is started by {@code doctor.Launcher}.
 */
public final class Main {
  /** What the doctor ends with where it could not do its work. */
  private static final int BROKEN = 70;

  private Main() {}

  /** Runs the command; ends with its exit status, and with 70 on a Java that is too old. */
  public static void main(final String[] arguments) throws Throwable {
    if (!EntryClass.isNewJava()) {
      System.err.println("zerohop: " + EntryClass.tooOld() + "; run another java");
      System.exit(BROKEN);
    }
    try {
      Class.forName("io.zerohop.spark.doctor.Launcher")
          .getMethod("main", String[].class)
          .invoke(null, (Object) arguments);
    } catch (final InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
