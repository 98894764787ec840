package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.HostBlocks;
import io.zerohop.shuffle.write.MapOutput.OverflowFiles;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.shuffle.write.WrittenBlocks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.Cleaner;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.agrona.UnsafeAccess;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A source may own the memory that it names, as one with a direct buffer does, and its caller need
 * not keep it while it is packed: it must not be collected before its bytes were copied. Compiled
 * code lets go of an object behind its last use, so the writer is compiled first; then the garbage
 * is collected between the last look at the source and the copy.
 */
class CollectedSourceTest {
  /** By then a method and what it calls are compiled with all optimisations. */
  private static final int WARM_UP = 20_000;

  private static final int RUNS = 5;
  private static final long PATIENCE_MILLIS = 200;
  private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final int BYTES = 4_000;
  private static final byte CONTENT = 0x5a;
  private static final Cleaner CLEANER = Cleaner.create();

  @TempDir private java.nio.file.Path base;

  private CountDownLatch collected;

  @Test
  void aSourceStaysUntilItsBytesWereCopied() {
    try (ShuffleNode node =
        ShuffleNode.start(
            TestNodes.config(base, "owner").set("checksum.enabled", false), deviceThatCollects())) {
      final long warm = UnsafeAccess.UNSAFE.allocateMemory(BYTES);
      for (int i = 0; i < WARM_UP; i++) {
        write(node, warm);
      }
      for (int i = 0; i < RUNS; i++) {
        collected = new CountDownLatch(1);
        assertThat(write(node, UnsafeAccess.UNSAFE.allocateMemory(BYTES)))
            .as("bytes of a source that nobody else keeps")
            .containsOnly(CONTENT);
      }
    }
  }

  /** As where it finds no room in memory. */
  @Test
  void aSourceStaysUntilItsBytesWereWrittenToAFile() throws IOException {
    final CollectingFiles files = new CollectingFiles();
    final long warm = UnsafeAccess.UNSAFE.allocateMemory(BYTES);
    for (int i = 0; i < WARM_UP; i++) {
      spill(files, warm);
    }
    for (int i = 0; i < RUNS; i++) {
      collected = new CountDownLatch(1);
      spill(files, UnsafeAccess.UNSAFE.allocateMemory(BYTES));
      assertThat(files.written).containsOnly(CONTENT);
    }
  }

  /** Or else the others would find nothing, whatever the writer kept. */
  @Test
  void aSourceThatNobodyKeepsIsCollectedAndWiped() throws InterruptedException {
    final long memory = UnsafeAccess.UNSAFE.allocateMemory(BYTES);
    collected = new CountDownLatch(1);
    drop(memory);
    final long begin = System.nanoTime();
    while (!collect()) {
      assertThat(System.nanoTime() - begin).as("it is never collected").isLessThan(LIMIT_NANOS);
    }
    final byte[] left = new byte[BYTES];
    Memory.view(memory, BYTES).get(left);
    assertThat(left).containsOnly(0);
  }

  private void drop(final long memory) {
    assertThat(new OwningSource(memory, collected).partitions()).isEqualTo(1);
  }

  private void spill(final CollectingFiles files, final long memory) throws IOException {
    try (MapOutput writer = MapOutput.inFiles(1, 0, 1, files)) {
      writer.append(new OwningSource(memory, collected));
    }
  }

  /** Files before whose writes {@link #collect} runs. */
  private final class CollectingFiles implements OverflowFiles {
    private final byte[] written = new byte[BYTES];

    @Override
    public void spill(final HostBlocks batch) {
      final long[] found = {0};
      batch.forEachExtent(0, (address, length) -> found[0] = address);
      try {
        collect();
      } catch (final InterruptedException e) {
        throw new AssertionError(e);
      }
      Memory.view(found[0], BYTES).get(written);
    }

    @Override
    public long[] write(final HostBlocks first, final HostBlocks last) {
      throw new AssertionError("nothing is committed");
    }

    @Override
    public long spilledBytes() {
      return 0;
    }

    @Override
    public void close() {}
  }

  private byte[] write(final ShuffleNode node, final long memory) {
    final byte[] written = new byte[BYTES];
    try (MapOutput writer = node.newMapOutput(1, 0, 1, Tier.DEVICE, null)) {
      writer.append(new OwningSource(memory, collected));
      WrittenBlocks.forEachExtent(
          writer, 0, (address, length) -> Memory.view(address, length).get(written));
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
    return written;
  }

  /** Memory of the host as if it were a GPU's, whose streams run {@link #collect} before copies. */
  private Device deviceThatCollects() {
    final HostDevice device = new HostDevice();
    return proxy(
        Device.class,
        (method, arguments) -> {
          final Object result = call(device, method, arguments);
          return result instanceof CopyStream stream ? streamThatCollects(stream) : result;
        });
  }

  private CopyStream streamThatCollects(final CopyStream stream) {
    return proxy(
        CopyStream.class,
        (method, arguments) -> {
          if (method.getName().equals("submit") && arguments[0] instanceof CopyBatch) {
            collect();
          }
          return call(stream, method, arguments);
        });
  }

  /** Returns whether a source was collected, which none must be that is being packed. */
  private boolean collect() throws InterruptedException {
    if (collected == null) {
      return false;
    }
    System.gc();
    return collected.await(PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
  }

  private interface Call {
    Object of(Method method, Object[] arguments) throws Throwable;
  }

  private static <T> T proxy(final Class<T> type, final Call call) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> call.of(method, arguments)));
  }

  private static Object call(final Object on, final Method method, final Object[] arguments)
      throws Throwable {
    try {
      return method.invoke(on, arguments);
    } catch (final InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Wipes its memory when it is collected, and leaves it there, so that nobody dies of it. */
  private static final class OwningSource implements PackSource {
    private final long address;

    OwningSource(final long memory, final CountDownLatch collected) {
      address = memory;
      UnsafeAccess.UNSAFE.setMemory(memory, BYTES, CONTENT);
      if (collected != null) {
        CLEANER.register(
            this,
            () -> {
              UnsafeAccess.UNSAFE.setMemory(memory, BYTES, (byte) 0);
              collected.countDown();
            });
      }
    }

    @Override
    public int partitions() {
      return 1;
    }

    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      consumer.extent(address, BYTES);
    }
  }
}
