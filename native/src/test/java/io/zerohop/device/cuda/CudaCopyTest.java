package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lists of every kind, by both kernels: every byte is compared, those between copies too. */
@EnabledIf(value = "io.zerohop.device.cuda.Gpus#one", disabledReason = "no GPU here")
class CudaCopyTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final byte POISON = (byte) 0xA5;
  private static final int AREA = 192 << 20;

  private final CudaUnderTest memory = new CudaUnderTest();

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void listsOfAllSizesArriveWhole(final boolean plain) {
    final byte[] source = new byte[AREA];
    new Random(1).nextBytes(source);
    try (CudaDevice device = new CudaDevice(0, 24, plain);
        Segment from = device.allocate(AREA);
        Segment to = device.allocate(AREA);
        CopyStream stream = device.openStream("lists")) {
      memory.write(from.address(), source);
      final int[][] lists = {
        {1, 1, 1},
        {3, 17, 300},
        {500, 1, 200_000},
        {64, 1, 5 << 20},
        {2, 64 << 20, 64 << 20},
        {200_000, 1, 900},
        {20_000, 1024, 1024},
        {5_000, 4096, 4096},
        {1, 64 << 20, 64 << 20},
        {1_000, 0, 20},
        {1, 130 << 20, 130 << 20},
        {2, 128 << 20, 128 << 20},
        {7, 4_194_303, 4_194_305},
        {50, 1_000_000, 3_000_000},
      };
      for (int i = 0; i < lists.length; i++) {
        check(stream, source, from, to, new Random(i), lists[i]);
      }
    }
  }

  private void check(
      final CopyStream stream,
      final byte[] source,
      final Segment from,
      final Segment to,
      final Random random,
      final int[] list) {
    final byte[] expected = new byte[AREA];
    Arrays.fill(expected, POISON);
    memory.write(to.address(), expected);
    final CopyBatch batch = stream.newBatch();
    int at = random.nextInt(64);
    for (int copy = 0; copy < list[0]; copy++) {
      // As likely to be short as to be long, within the bounds.
      final double exponent = random.nextDouble();
      final int length =
          list[1] >= list[2]
              ? list[1]
              : (int) (list[1] + Math.pow(list[2] - list[1] + 1.0, exponent) - 1);
      final int gap = random.nextInt(3) == 0 ? random.nextInt(40) : 0;
      if (at + gap + length > AREA) {
        break;
      }
      final int start = random.nextInt(AREA - length + 1);
      at += gap;
      batch.add(from.address() + start, to.address() + at, length);
      System.arraycopy(source, start, expected, at, length);
      at += length;
    }
    stream.submit(batch);
    stream.synchronize(LIMIT);
    final byte[] actual = memory.read(to.address(), AREA);
    final int wrong = Arrays.mismatch(actual, expected);
    if (wrong >= 0) {
      throw new AssertionError("list " + Arrays.toString(list) + " differs at byte " + wrong);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aLaunchWaitsCopiesAndRaises(final boolean plain) {
    try (CudaDevice device = new CudaDevice(0, 24, plain);
        Segment segment = device.allocate(8 << 20);
        CopyStream first = device.openStream("first");
        CopyStream second = device.openStream("second")) {
      final byte[] bytes = new byte[1 << 20];
      new Random(2).nextBytes(bytes);
      memory.write(segment.address(), bytes);
      final Signal go = device.signal(segment, 7 << 20);
      final Signal ready = device.signal(segment, (7 << 20) + 64);
      final Signal done = device.signal(segment, (7 << 20) + 128);
      final CopyBatch batch = first.newBatch();
      for (int epoch = 1; epoch <= 50; epoch++) {
        batch.clear();
        add(batch, segment.address(), segment.address() + (2 << 20), bytes.length);
        first.submit(
            batch,
            List.of(new SignalEpoch(go, epoch)),
            List.of(new SignalEpoch(ready, epoch)),
            LIMIT);
        batch.clear();
        add(batch, segment.address() + (2 << 20), segment.address() + (4 << 20), bytes.length);
        second.submit(
            batch,
            List.of(new SignalEpoch(ready, epoch)),
            List.of(new SignalEpoch(done, epoch)),
            LIMIT);
        assertThat(done.epoch()).isEqualTo(epoch - 1);
        go.raise(epoch);
        done.await(epoch, LIMIT, () -> false);
        assertThat(memory.read(segment.address() + (4 << 20), bytes.length)).isEqualTo(bytes);
      }
      first.synchronize(LIMIT);
      second.synchronize(LIMIT);
    }
  }

  private static void add(final CopyBatch batch, final long from, final long to, final int length) {
    for (int at = 0; at < length; at += 5_001) {
      batch.add(from + at, to + at, Math.min(5_001, length - at));
    }
  }
}
