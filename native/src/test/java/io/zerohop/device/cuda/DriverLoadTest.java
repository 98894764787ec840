package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import jcuda.JCudaVersion;
import jcuda.LibUtils;
import jcuda.driver.CUdevice;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/** JCuda's library comes out of the jar, whatever lies in the temporary folder. */
final class DriverLoadTest {
  private static final String LIBRARY =
      "lib" + LibUtils.createPlatformLibraryName("JCudaDriver-" + JCudaVersion.get()) + ".so";
  private static final int FOREIGN_USER = 65534;

  @TempDir Path temporary;
  @TempDir Path drivers;

  @BeforeEach
  void findDriver() throws Exception {
    NativeLibrary.require();
    if (!CudaDriver.present()) {
      StubDriver.build(drivers);
    }
  }

  @Test
  void loadsFromAFolderThatIsGoneAfterwards() throws Exception {
    try (ChildJvm child = probe(List.of())) {
      checkLoaded(child);
    }
    assertThat(left()).isEmpty();
  }

  @Test
  void aLibraryOfAnotherUserIsNotLoaded() throws Exception {
    final Path planted = plant(original());
    if (Descriptor.userId() == 0) {
      Files.setAttribute(planted, "unix:uid", FOREIGN_USER);
    }
    try (ChildJvm child = probe(List.of())) {
      checkLoaded(child);
    }
    assertThat(left()).containsExactly(planted);
  }

  @Test
  void aHalfWrittenLibraryDoesNoHarm() throws Exception {
    final byte[] whole = original();
    final Path planted = plant(Arrays.copyOf(whole, whole.length / 2));
    try (ChildJvm child = probe(List.of())) {
      checkLoaded(child);
    }
    assertThat(left()).containsExactly(planted);
  }

  @Test
  void aLockThatSomebodyHoldsIsNotWaitedFor() throws Exception {
    for (final String name : List.of("zerohop-jcuda-" + Descriptor.userId() + ".lock", LIBRARY)) {
      try (FileChannel channel =
              FileChannel.open(
                  temporary.resolve(name), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
          FileLock held = channel.lock();
          ChildJvm child = probe(List.of())) {
        assertThat(held.isValid()).isTrue();
        checkLoaded(child);
      }
    }
  }

  @Test
  void anInterruptIsNotRemembered() throws Exception {
    try (ChildJvm child = probe(List.of(), "interrupted")) {
      checkLoaded(child);
    }
  }

  @Test
  void processesThatStartTogetherDoNotMeet() throws Exception {
    try (ChildJvm one = probe(List.of());
        ChildJvm two = probe(List.of());
        ChildJvm three = probe(List.of())) {
      for (final ChildJvm child : List.of(one, two, three)) {
        checkLoaded(child);
      }
    }
    assertThat(left()).isEmpty();
  }

  @Test
  void anotherJCudaBeforeOursIsRefused() throws Exception {
    final Path planted = plant(original());
    final Path other =
        Path.of(CUdevice.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    try (ChildJvm child = probe(List.of("-Xbootclasspath/a:" + other))) {
      assertThat(child.line()).contains("another JCuda", "remove its jar");
      assertThat(child.line()).isNull();
    }
    assertThat(planted).exists();
  }

  @Test
  void aFolderThatIsNotThereIsNamed() throws Exception {
    final Path folder = temporary.resolve("none");
    try (ChildJvm child = ChildJvm.start(environment(folder, List.of()), DriverProbe.class)) {
      assertThat(child.line()).contains(folder.toString(), "set -Djava.io.tmpdir to another");
    }
  }

  @Test
  void aFolderMountedNoexecOrReadOnlyIsNamed() throws Exception {
    final List<String> trial =
        List.of("unshare", "-m", "mount", "-t", "tmpfs", "none", temporary.toString());
    if (new ProcessBuilder(trial).start().waitFor() != 0) {
      throw new TestAbortedException("only who may mount can try this");
    }
    for (final String option : List.of("noexec", "ro")) {
      final String mount = "mount -t tmpfs -o " + option + " none \"$0\" && exec \"$@\"";
      final List<String> command =
          new ArrayList<>(List.of("unshare", "-m", "sh", "-c", mount, temporary.toString()));
      command.addAll(environment(temporary, List.of()));
      try (ChildJvm child = ChildJvm.start(command, DriverProbe.class)) {
        assertThat(child.line()).contains("from " + temporary, "set -Djava.io.tmpdir to another");
        assertThat(child.line()).isNull();
      }
    }
  }

  /** It got as far as the driver, by a library that nobody else could have written. */
  private void checkLoaded(final ChildJvm child) throws IOException, InterruptedException {
    assertThat(child.line()).matches("null|.* shows no GPU .*");
    assertThat(child.line())
        .startsWith(temporary + "/")
        .isNotEqualTo(temporary.resolve(LIBRARY).toString())
        .endsWith("/" + LIBRARY + " (deleted)");
    assertThat(child.line()).isNull();
    assertThat(child.exitCode()).isZero();
  }

  private ChildJvm probe(final List<String> options, final String... arguments) throws IOException {
    return ChildJvm.start(environment(temporary, options), DriverProbe.class, arguments);
  }

  private List<String> environment(final Path folder, final List<String> options) {
    final List<String> all = new ArrayList<>(options);
    all.add("-Djava.io.tmpdir=" + folder);
    final List<String> command =
        new ArrayList<>(List.of("env", "JDK_JAVA_OPTIONS=" + String.join(" ", all)));
    if (!CudaDriver.present()) {
      command.add("LD_LIBRARY_PATH=" + drivers);
    }
    return command;
  }

  /** Puts a file where JCuda's own loader would take it for its library. */
  private Path plant(final byte[] bytes) throws IOException {
    return Files.write(temporary.resolve(LIBRARY), bytes);
  }

  private static byte[] original() throws IOException {
    try (InputStream library = LibUtils.class.getResourceAsStream("/lib/" + LIBRARY)) {
      return library.readAllBytes();
    }
  }

  private List<Path> left() throws IOException {
    try (Stream<Path> files = Files.list(temporary)) {
      return files.toList();
    }
  }
}
