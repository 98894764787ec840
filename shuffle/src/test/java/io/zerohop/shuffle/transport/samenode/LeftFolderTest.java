package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.TestClock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The directories of a keeper, of which some cannot be used when it starts. */
class LeftFolderTest {
  private static final int AUTO = -1;

  @TempDir private Path temp;

  private LeftFolder open(final long limit, final long most, final Path... dirs) {
    return LeftFolder.open(List.of(dirs), limit, most, TestClock.standing());
  }

  @Test
  void oneThatFailsAtTheStartIsPassedOver() throws IOException {
    final Path missing = temp.resolve("missing");
    final LeftFolder folder = open(AUTO, Long.MAX_VALUE, missing, temp);
    assertThat(folder.limit()).isPositive();
    folder.create().close();
    final LeftFolder limited = open(7, Long.MAX_VALUE, missing, temp);
    assertThat(limited.limit()).isEqualTo(7);
    limited.create().close();
  }

  @Test
  void onesThatAllFailAtTheStartAreTriedAgain() throws IOException {
    final Path one = temp.resolve("one");
    final Path other = temp.resolve("other");
    final LeftFolder folder = open(AUTO, Long.MAX_VALUE, one, other);
    assertThat(folder.limit()).isZero();
    assertThatThrownBy(folder::create).isInstanceOf(IOException.class);
    folder.failed("a test", new IOException("for want of a directory"));
    assertThat(folder.isUsable()).isFalse();
    Files.createDirectory(other);
    folder.create().close();
    assertThat(folder.limit()).isPositive();
  }

  @Test
  void theLimitIsNotMoreThanTheKeepersShare() {
    assertThat(open(AUTO, 3, temp).limit()).isEqualTo(3);
    assertThat(open(7, 3, temp).limit()).isEqualTo(3);
    assertThat(open(3, 7, temp).limit()).isEqualTo(3);
  }
}
