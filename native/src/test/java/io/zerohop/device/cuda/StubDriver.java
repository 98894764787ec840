package io.zerohop.device.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.opentest4j.TestAbortedException;

/**
 * A {@code libcuda.so.1} without a GPU, with which everything up to cuInit can be tried anywhere.
 */
final class StubDriver {
  /** What must be there before JCuda is loaded, and what is called after. */
  private static final List<String> FUNCTIONS =
      List.of(
          "cuMemGetAllocationGranularity",
          "cuMemCreate",
          "cuMemRelease",
          "cuMemExportToShareableHandle",
          "cuMemImportFromShareableHandle",
          "cuMemAddressReserve",
          "cuMemAddressFree",
          "cuMemMap",
          "cuMemUnmap",
          "cuMemSetAccess",
          "cuInit",
          "cuDeviceGetCount");

  private StubDriver() {}

  /** Compiles it into a folder, for LD_LIBRARY_PATH; every function says "no device". */
  static void build(final Path folder) throws IOException, InterruptedException {
    final String source =
        FUNCTIONS.stream()
            .map(name -> "int " + name + "(void) { return 100; }\n")
            .collect(Collectors.joining());
    compile(folder, Files.writeString(folder.resolve("stub.c"), source));
  }

  /** Compiles a driver's source into a folder, for LD_LIBRARY_PATH. */
  static void compile(final Path folder, final Path file) throws IOException, InterruptedException {
    final String library = folder.resolve("libcuda.so.1").toString();
    final Process compiler;
    try {
      compiler =
          new ProcessBuilder("cc", "-shared", "-fPIC", "-o", library, file.toString())
              .inheritIO()
              .start();
    } catch (final IOException e) {
      throw new TestAbortedException("there is neither a driver nor a compiler to make one", e);
    }
    if (compiler.waitFor() != 0) {
      throw new AssertionError("cannot compile " + file);
    }
  }
}
