package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.transport.ControlService;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The owner's side: tells readers on other nodes where blocks lie, holds them meanwhile, and sends
 * them where they cannot be got. See {@link Wire} for what can be asked. Thread safe.
 */
final class RemoteService implements ControlService {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteService.class);

  /** A reader that has not passed by then is taken for one that never will. */
  private static final Duration LEASE_LIMIT = Duration.ofMinutes(5);

  private final UcxEngine engine;
  private final RegisteredSegments segments;
  private final BlockHolder holder;
  private final Devices devices;
  private final Slabs slabs;
  private final TestRange testRange;
  private final Duration deviceLimit;
  private final Executor executor;
  private final Map<Long, ServedReader> readers = new ConcurrentHashMap<>();
  private final AtomicLong nextLease = new AtomicLong();
  private volatile long incarnation;

  /**
   * @param executor runs what takes longer than a channel's thread should
   */
  RemoteService(
      final UcxEngine engine,
      final RegisteredSegments segments,
      final BlockHolder holder,
      final Devices devices,
      final Slabs slabs,
      final TestRange testRange,
      final Duration deviceLimit,
      final Executor executor) {
    this.engine = engine;
    this.segments = segments;
    this.holder = holder;
    this.devices = devices;
    this.slabs = slabs;
    this.testRange = testRange;
    this.deviceLimit = deviceLimit;
    this.executor = executor;
  }

  /** Which life of this executor answers; set before anybody can know of it. */
  void incarnation(final long own) {
    incarnation = own;
  }

  @Override
  public void asked(final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final ByteBuffer copy = ByteBuffer.allocate(question.remaining()).put(question).flip();
    final ServedReader reader = readers.computeIfAbsent(link, first -> new ServedReader(engine));
    executor.execute(
        () -> {
          try {
            answer(reader, copy, answer);
          } catch (final RuntimeException e) {
            // No answer would have it wait for its limit; an empty one says no at once.
            LOG.debug("a question of a reader cannot be answered", e);
            answer.accept(refusal(e));
          }
        });
  }

  private void answer(
      final ServedReader reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    switch (question.get()) {
      case Wire.HELLO -> answer.accept(hello(reader, question));
      case Wire.OPEN -> answer.accept(open(reader, question));
      case Wire.KEYS -> answer.accept(keys(question));
      case Wire.SEND -> send(reader, question, answer);
      case Wire.CLOSE ->
          answer.accept(granted(1).put((byte) (reader.drop(question.getLong()) ? 1 : 0)).flip());
      case Wire.TEST -> test(reader, question, answer);
      default -> throw new IllegalArgumentException("there is no such question");
    }
  }

  private static ByteBuffer granted(final int bytes) {
    return ByteBuffer.allocate(1 + bytes).put(Wire.GRANTED);
  }

  private static ByteBuffer refusal(final RuntimeException why) {
    final byte[] words = String.valueOf(why.getMessage()).getBytes(Wire.TEXT);
    return ByteBuffer.allocate(1 + words.length).put(Wire.REFUSED).put(words).flip();
  }

  private ByteBuffer hello(final ServedReader reader, final ByteBuffer question) {
    if (question.getInt() != Wire.VERSION) {
      throw new IllegalArgumentException(
          "the executors run different versions of Zerohop; give all the same jar");
    }
    reader.address(Wire.bytes(question));
    final byte[] own = engine.address();
    final byte[] key = testRange.key();
    final ByteBuffer answer = granted(4 + 8 + 4 + own.length + 8 + 8 + 4 + key.length);
    answer.putInt(Wire.VERSION).putLong(incarnation);
    Wire.put(answer, own);
    answer.putLong(testRange.address()).putLong(testRange.bytes());
    Wire.put(answer, key);
    return answer.flip();
  }

  private ByteBuffer open(final ServedReader reader, final ByteBuffer question) {
    final ServedLease lease =
        ServedLease.of(holder, question.getInt(), question, devices, deviceLimit);
    final long id = nextLease.incrementAndGet();
    final ByteBuffer answer = granted(8 + 1 + lease.extents().encodedBytes());
    answer.putLong(id).put((byte) (lease.byMessage() ? 1 : 0));
    lease.extents().write(answer);
    reader.hold(id, lease);
    return answer.flip();
  }

  private ByteBuffer keys(final ByteBuffer question) {
    final int count = question.getInt();
    if (count < 0 || count > question.remaining() / Long.BYTES) {
      throw new IllegalArgumentException("the question is cut off");
    }
    final byte[][] keys = new byte[count][];
    final long[] addresses = new long[count];
    int bytes = 0;
    for (int i = 0; i < count; i++) {
      final SegmentMemory memory = segments.memory(question.getLong());
      final byte[] key = memory == null ? null : segments.key(memory);
      keys[i] = key == null ? new byte[0] : key;
      addresses[i] = memory == null ? 0 : memory.address();
      bytes += 8 + 4 + keys[i].length;
    }
    final ByteBuffer answer = granted(bytes);
    for (int i = 0; i < count; i++) {
      answer.putLong(addresses[i]);
      Wire.put(answer, keys[i]);
    }
    return answer.flip();
  }

  private void send(
      final ServedReader reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final long id = question.getLong();
    final long transfer = question.getLong();
    final ServedLease lease = reader.find(id);
    if (lease == null) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY, "the lease on the blocks has ended");
    }
    final Packing packing = new Packing(lease, slabs);
    boolean started = false;
    try {
      final List<Sending.Message> messages = packing.messages();
      final long bytes = messages.stream().mapToLong(Sending.Message::bytes).sum();
      final Sending sending =
          new Sending(
              reader.back(),
              transfer,
              messages,
              failure -> {
                packing.close();
                lease.release();
                reader.drop(id);
                answer.accept(sent(failure, bytes));
              });
      started = true;
      sending.start();
    } finally {
      if (!started) {
        packing.close();
        lease.release();
      }
    }
  }

  private static ByteBuffer sent(final String failure, final long bytes) {
    return failure == null
        ? granted(Long.BYTES).putLong(bytes).flip()
        : refusal(new ZerohopException(ZerohopException.Category.RETRY, failure));
  }

  private void test(
      final ServedReader reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final Sending.Message all = new Sending.Message(0, testRange.address(), testRange.bytes());
    new Sending(
            reader.back(),
            question.getLong(),
            List.of(all),
            failure -> answer.accept(sent(failure, testRange.bytes())))
        .start();
  }

  /** Ends leases of readers that take too long. */
  void expire() {
    readers.values().forEach(reader -> reader.expire(LEASE_LIMIT.toNanos()));
  }

  /** Leases that readers on other nodes hold here. */
  int leases() {
    return readers.values().stream().mapToInt(ServedReader::leases).sum();
  }

  @Override
  public void disconnected(final long link) {
    final ServedReader reader = readers.remove(link);
    if (reader != null) {
      reader.close();
    }
  }

  /** Ends all leases. */
  void close() {
    readers.keySet().forEach(this::disconnected);
  }
}
