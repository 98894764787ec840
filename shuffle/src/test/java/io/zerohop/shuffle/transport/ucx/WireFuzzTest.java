package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.zerohop.device.Fuzz;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.OpaqueHandle;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.remote.RemoteService;
import io.zerohop.shuffle.transport.remote.RemoteServiceTest;
import io.zerohop.shuffle.transport.remote.ServedReader;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents;
import io.zerohop.shuffle.transport.ucx.UcxNode.UcxAnswers;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.FabricTarget;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What nodes ask each other about blocks, and what they answer. */
class WireFuzzTest {
  private static final int MOST = 8;
  private static final long LINK = 1;

  private final RemoteService<ServedReader> service =
      new UcxAnswers(
          Config.defaults(),
          RemoteServiceTest.SELF,
          RemoteServiceTest.NOTHING,
          Runnable::run,
          Runnable::run,
          null,
          new TransferMemory(null, null, null, null, null));

  @AfterEach
  void close() {
    service.close();
  }

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

  private static byte[] target(final Random random) {
    final byte[] key = new byte[random.nextInt(64)];
    random.nextBytes(key);
    final TestTarget target = new TestTarget(random.nextLong(), random.nextLong(), key);
    final ByteBuffer to = ByteBuffer.allocate(target.encodedBytes());
    target.write(to);
    return encoded(to);
  }

  private static byte[] fabricTarget(final Random random) {
    final byte[] handle = new byte[64];
    random.nextBytes(handle);
    final SegmentHandle sent =
        new OpaqueHandle(SegmentHandle.Kind.FABRIC, 1L << random.nextInt(40), handle);
    final FabricTarget target = FabricTarget.of(random.nextInt(9) == 0 ? null : sent);
    final ByteBuffer to = ByteBuffer.allocate(target.encodedBytes());
    target.write(to);
    return encoded(to);
  }

  private static byte[] question(final Random random) {
    final ByteBuffer to = ByteBuffer.allocate(256);
    switch (random.nextInt(5)) {
      case 0 -> to.put(Wire.PING);
      case 1 -> {
        final int blocks = random.nextInt(MOST);
        to.put(Wire.OPEN).putInt(random.nextInt()).putInt(blocks);
        for (int i = 0; i < blocks; i++) {
          to.putLong(random.nextInt(3)).putInt(random.nextInt(9));
        }
      }
      case 2 -> to.put(Wire.CLOSE).putLong(random.nextInt(9));
      case 3 -> to.put(GetQuestions.HANDLES).putInt(0);
      default -> to.put(GetQuestions.KEYS).putInt(0);
    }
    return encoded(to);
  }

  static Stream<Arguments> extentSeeds() {
    return Fuzz.seeds(WireFuzzTest::extents);
  }

  static Stream<Arguments> targetSeeds() {
    return Fuzz.seeds(WireFuzzTest::target);
  }

  static Stream<Arguments> fabricTargetSeeds() {
    return Fuzz.seeds(WireFuzzTest::fabricTarget);
  }

  static Stream<Arguments> questionSeeds() {
    return Fuzz.seeds(WireFuzzTest::question);
  }

  @MethodSource("extentSeeds")
  @FuzzTest
  void extents(final byte[] bytes) {
    areExtents(bytes);
  }

  private static boolean areExtents(final byte[] bytes) {
    try {
      final RemoteExtents read = RemoteExtents.read(ByteBuffer.wrap(bytes));
      for (int block = 0; block < read.blocks(); block++) {
        assertThat(read.begin(block)).isBetween(0, read.end(block));
        assertThat(read.end(block)).isLessThanOrEqualTo(read.size());
      }
      return true;
    } catch (final BufferUnderflowException | IllegalArgumentException e) {
      return false;
    }
  }

  @MethodSource("targetSeeds")
  @FuzzTest
  void targets(final byte[] bytes) {
    isTarget(bytes);
  }

  private static boolean isTarget(final byte[] bytes) {
    try {
      return TestTarget.read(ByteBuffer.wrap(bytes)) != null;
    } catch (final BufferUnderflowException e) {
      return false;
    }
  }

  @MethodSource("fabricTargetSeeds")
  @FuzzTest
  void fabricTargets(final byte[] bytes) {
    isFabricTarget(bytes);
  }

  private static boolean isFabricTarget(final byte[] bytes) {
    try {
      return FabricTarget.read(ByteBuffer.wrap(bytes)) != null;
    } catch (final BufferUnderflowException e) {
      return false;
    }
  }

  @MethodSource("questionSeeds")
  @FuzzTest
  void questionsHaveOneAnswerEach(final byte[] bytes) {
    answer(bytes);
  }

  /** Returns the first byte of the one answer. */
  private byte answer(final byte[] bytes) {
    final List<Byte> answers = new ArrayList<>();
    service.asked(LINK, ByteBuffer.wrap(bytes), answer -> answers.add(answer.get()));
    assertThat(answers).hasSize(1);
    service.disconnected(LINK);
    service.close(); // Leases of a reader that is gone stay for a while: millions of them here.
    return answers.get(0);
  }

  @Test
  void whatIsRightIsTakenAndWhatIsCutOffIsNot() {
    hold(WireFuzzTest::extents, WireFuzzTest::areExtents);
    hold(WireFuzzTest::target, WireFuzzTest::isTarget);
    hold(WireFuzzTest::fabricTarget, WireFuzzTest::isFabricTarget);
    hold(WireFuzzTest::question, bytes -> answer(bytes) == Wire.GRANTED);
  }

  private static void hold(final Function<Random, byte[]> maker, final Predicate<byte[]> taken) {
    assertThat(Fuzz.good(maker))
        .allMatch(taken)
        .allSatisfy(bytes -> assertThat(taken).rejects(Arrays.copyOf(bytes, bytes.length - 1)));
  }
}
