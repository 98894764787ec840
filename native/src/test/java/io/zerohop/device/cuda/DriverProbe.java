package io.zerohop.device.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** A JVM that asks for the driver, and says what came of it. */
public final class DriverProbe {
  private DriverProbe() {}

  /**
   * Prints why there is no GPU ("null" if there is one), then the mapped files that are JCuda's. An
   * argument makes the first of two questions come from an interrupted thread.
   */
  public static void main(final String[] arguments) throws IOException {
    if (arguments.length > 0) {
      Thread.currentThread().interrupt();
      CudaDriver.absence();
      if (!Thread.interrupted()) {
        throw new AssertionError("the interrupt was swallowed");
      }
    }
    System.out.println(CudaDriver.absence());
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      maps.filter(line -> line.contains("libJCuda"))
          .map(line -> line.substring(line.indexOf('/')))
          .distinct()
          .forEach(System.out::println);
    }
  }
}
