package io.zerohop.device.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import io.zerohop.device.StreamPool;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class StreamPoolTest {
  private static final Duration LIMIT = Duration.ofSeconds(20);

  private final HostDevice device = new HostDevice();
  private final List<String> opened = new ArrayList<>();
  private final StreamPool pool =
      new StreamPool(
          name -> {
            opened.add(name);
            return device.openStream(name);
          });

  private void copy(final CopyStream stream, final Segment segment, final boolean wait) {
    final CopyBatch batch = stream.newBatch();
    batch.add(segment.address(), segment.address() + 64, 8);
    stream.submit(batch);
    if (wait) {
      stream.synchronize(LIMIT);
    }
  }

  @Test
  void onlyAStreamThatWasWaitedForIsUsedAgain() {
    try (Segment segment = device.allocate(4096)) {
      for (int i = 0; i < 3; i++) {
        try (CopyStream stream = pool.take()) {
          copy(stream, segment, true);
        }
      }
      assertThat(opened).hasSize(1);
      try (CopyStream stream = pool.take()) {
        copy(stream, segment, false);
      }
      assertThat(device.openResources()).as("the busy one was closed for good").isEqualTo(1);
      pool.take().close();
      assertThat(opened).hasSize(2);
    }
    pool.close();
    device.close();
  }

  @Test
  void whatWasGivenBackIsNotUsedAnyMore() {
    final CopyStream stream = pool.take();
    final CopyStream other = pool.take();
    assertThat(opened).hasSize(2);
    stream.close();
    stream.close();
    assertThatThrownBy(() -> stream.synchronize(LIMIT)).isInstanceOf(IllegalStateException.class);
    pool.close();
    assertThat(device.openResources()).isEqualTo(1);
    other.close();
    device.close();
  }

  @Test
  void workThatDoesNotEndIsTheFailureToKnowOf() {
    final ZerohopException unended = new ZerohopException(Category.FATAL, "it does not end");
    final ZerohopException first = new ZerohopException(Category.RETRY, "waited too long");
    final StreamPool stuck = new StreamPool(name -> closingWith(device.openStream(name), unended));
    try (Segment segment = device.allocate(4096)) {
      assertThatThrownBy(
              () ->
                  stuck.run(
                      stream -> {
                        copy(stream, segment, false);
                        throw first;
                      }))
          .isSameAs(unended)
          .hasSuppressedException(first);
      assertThatThrownBy(() -> stuck.run(stream -> copy(stream, segment, false))).isSameAs(unended);
    }
    stuck.close();
    device.close();
  }

  @Test
  void aStreamGoesBackBehindWorkThatFails() {
    final ZerohopException first = new ZerohopException(Category.RETRY, "no");
    assertThatThrownBy(
            () ->
                pool.run(
                    stream -> {
                      throw first;
                    }))
        .isSameAs(first);
    pool.run(stream -> {});
    assertThat(opened).hasSize(1);
    pool.close();
    device.close();
  }

  /** The same stream, but that its end fails once it has ended. */
  private static CopyStream closingWith(final CopyStream stream, final ZerohopException failure) {
    return (CopyStream)
        Proxy.newProxyInstance(
            CopyStream.class.getClassLoader(),
            new Class<?>[] {CopyStream.class},
            (proxy, method, arguments) -> {
              final Object result = method.invoke(stream, arguments);
              if (method.getName().equals("close")) {
                throw failure;
              }
              return result;
            });
  }
}
