package io.zerohop.device;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Each native method has its function in the library of each architecture. The JVM looks for it at
 * the first call only, which for some is on a machine with a GPU.
 */
class NativeMethodsTest {
  private static final Path CLASSES = Path.of("target/classes");
  private static final Path LIBRARIES = CLASSES.resolve("io/zerohop/device/lib");

  @Test
  void everyNativeMethodHasItsFunction() throws Exception {
    final List<String> functions = functions();
    assertThat(functions).hasSizeGreaterThan(20);
    final List<Path> libraries = files(LIBRARIES, ".so");
    assertThat(libraries).isNotEmpty();
    for (final Path library : libraries) {
      final String bytes = new String(Files.readAllBytes(library), ISO_8859_1);
      assertThat(functions)
          .as("functions in %s", library)
          .allSatisfy(name -> assertThat(bytes.contains('\0' + name + '\0')).as(name).isTrue());
    }
  }

  private static List<String> functions() throws Exception {
    final List<String> names = new ArrayList<>();
    for (final Path file : files(CLASSES.resolve("io/zerohop"), ".class")) {
      final String path = CLASSES.relativize(file).toString();
      final String name = path.substring(0, path.length() - ".class".length()).replace('/', '.');
      final Class<?> type = Class.forName(name, false, NativeMethodsTest.class.getClassLoader());
      Arrays.stream(type.getDeclaredMethods())
          .filter(method -> Modifier.isNative(method.getModifiers()))
          .map(Method::getName)
          .map(method -> "Java_" + mangled(name) + "_" + mangled(method))
          .forEach(names::add);
    }
    return names;
  }

  /** As the JNI specification has it, "Resolving Native Method Names". */
  private static String mangled(final String name) {
    return name.replace("_", "_1").replace(".", "_").replace("$", "_00024");
  }

  private static List<Path> files(final Path folder, final String suffix) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(file -> file.toString().endsWith(suffix)).toList();
    }
  }
}
