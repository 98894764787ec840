package io.zerohop.spark.keeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.keeper.SegmentCopier.Order;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The process that copies GPU memory for a keeper, where it fails. */
@Timeout(120)
class GpuCopyProcessTest {
  /** No GPU has that name, and no keeper that socket. */
  private static final Order ORDER =
      new Order(
          Path.of("/nowhere/socket"),
          "1-0000000000000001.left",
          "GPU-00000000-0000-0000-0000-000000000000",
          List.of(1L, 2L));

  private static final byte[] SECRET = new byte[32];

  private static long children() {
    return ProcessHandle.current().children().filter(ProcessHandle::isAlive).count();
  }

  @Test
  void whoStartsItHearsThatItHasFailed() {
    assertThatThrownBy(
            () ->
                GpuCopyProcess.run(
                    ORDER, SECRET, () -> {}, Duration.ofMinutes(1), () -> false, Clock.system()))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("ended with 1");
  }

  @Test
  void itEndsWhenNobodyWantsItOrItsTimeIsOver() {
    final long before = children();
    assertThatThrownBy(
            () ->
                GpuCopyProcess.run(
                    ORDER, SECRET, () -> {}, Duration.ofMinutes(1), () -> true, Clock.system()))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("the keeper ends");
    assertThatThrownBy(
            () ->
                GpuCopyProcess.run(
                    ORDER, SECRET, () -> {}, Duration.ZERO, () -> false, Clock.system()))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("longer than");
    while (children() > before) {
      Thread.onSpinWait(); // It was told to end.
    }
    assertThat(children()).isLessThanOrEqualTo(before);
  }
}
