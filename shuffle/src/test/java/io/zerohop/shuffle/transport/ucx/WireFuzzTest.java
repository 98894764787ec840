package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Fuzz;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.OpaqueHandle;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.ucx.owner.RemoteService;
import io.zerohop.shuffle.transport.ucx.owner.RemoteServiceTest;
import io.zerohop.shuffle.transport.ucx.wire.FabricTarget;
import io.zerohop.shuffle.transport.ucx.wire.RemoteExtents;
import io.zerohop.shuffle.transport.ucx.wire.TestTarget;
import io.zerohop.shuffle.transport.ucx.wire.Wire;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What nodes ask each other about blocks, and what they answer. */
class WireFuzzTest {
  private static final int MOST = 8;
  private static final long LINK = 1;

  private static byte[] encoded(final ByteBuffer written) {
    final byte[] bytes = new byte[written.flip().remaining()];
    written.get(bytes);
    return bytes;
  }

  private static byte[] extents(final Random random) {
    final RemoteExtents extents = new RemoteExtents();
    for (int block = random.nextInt(MOST); block >= 0; block--) {
      for (int i = random.nextInt(MOST); i > 0; i--) {
        extents.add(
            random.nextLong(),
            random.nextInt(1 << 30),
            1 + random.nextInt(1 << 20),
            random.nextBoolean(),
            random.nextInt());
      }
      extents.endBlock();
    }
    final ByteBuffer to = ByteBuffer.allocate(extents.encodedBytes());
    extents.write(to);
    return encoded(to);
  }

  @Test
  void extents() throws IOException {
    Fuzz.run(
        "extents of blocks",
        WireFuzzTest::extents,
        bytes -> {
          final RemoteExtents read = RemoteExtents.read(ByteBuffer.wrap(bytes));
          for (int block = 0; block < read.blocks(); block++) {
            assertThat(read.begin(block)).isBetween(0, read.end(block));
            assertThat(read.end(block)).isLessThanOrEqualTo(read.size());
          }
          return true;
        },
        List.of(BufferUnderflowException.class, IllegalArgumentException.class));
  }

  @Test
  void targets() throws IOException {
    Fuzz.run(
        "test target",
        random -> {
          final byte[] key = new byte[random.nextInt(64)];
          random.nextBytes(key);
          final TestTarget target = new TestTarget(random.nextLong(), random.nextLong(), key);
          final ByteBuffer to = ByteBuffer.allocate(target.encodedBytes());
          target.write(to);
          return encoded(to);
        },
        bytes -> TestTarget.read(ByteBuffer.wrap(bytes)) != null,
        List.of(BufferUnderflowException.class));
  }

  @Test
  void fabricTargets() throws IOException {
    Fuzz.run(
        "fabric handle",
        random -> {
          final byte[] handle = new byte[64];
          random.nextBytes(handle);
          final SegmentHandle sent =
              new OpaqueHandle(SegmentHandle.Kind.FABRIC, 1L << random.nextInt(40), handle);
          final FabricTarget target = FabricTarget.of(random.nextInt(9) == 0 ? null : sent);
          final ByteBuffer to = ByteBuffer.allocate(target.encodedBytes());
          target.write(to);
          return encoded(to);
        },
        bytes -> FabricTarget.read(ByteBuffer.wrap(bytes)) != null,
        List.of(BufferUnderflowException.class));
  }

  private static byte[] question(final Random random) {
    final ByteBuffer to = ByteBuffer.allocate(256);
    switch (random.nextInt(5)) {
      case 0 -> to.put(Wire.PING);
      case 1 -> {
        final int blocks = random.nextInt(MOST);
        to.put(Wire.OPEN).put((byte) random.nextInt(2)).putInt(random.nextInt()).putInt(blocks);
        for (int i = 0; i < blocks; i++) {
          to.putLong(random.nextInt(3)).putInt(random.nextInt(9));
        }
      }
      case 2 -> to.put(Wire.CLOSE).putLong(random.nextInt(9));
      case 3 -> to.put(Wire.HANDLES).putInt(0);
      default -> to.put(Wire.KEYS).putInt(0);
    }
    return encoded(to);
  }

  @Test
  void questionsHaveOneAnswerEach() throws IOException {
    final Devices devices = new Devices(null);
    final RemoteService service = RemoteServiceTest.serviceOfNothing(devices, Runnable::run);
    Fuzz.run(
        "question",
        WireFuzzTest::question,
        bytes -> {
          final List<Byte> answers = new ArrayList<>();
          service.asked(LINK, ByteBuffer.wrap(bytes), answer -> answers.add(answer.get()));
          assertThat(answers).hasSize(1);
          service.disconnected(LINK);
          return answers.get(0) == Wire.GRANTED;
        },
        List.of());
    service.close();
    devices.close();
  }
}
