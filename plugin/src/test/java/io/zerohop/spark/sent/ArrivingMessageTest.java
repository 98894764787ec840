package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Crc32c;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.spark.sent.Uploads.ArrivingMessage;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A compressed message at its place, whole, damaged, or made up by somebody. */
class ArrivingMessageTest {
  private static final int BYTES = 50_000;
  private static final byte BEYOND = 77;

  private final Random random = new Random(11);
  private final HostDevice device = new HostDevice();
  private final Slabs slabs = new Slabs(device::hostBuffer, 1 << 20, Clock.system());
  private final Slab memory = slabs.take(2 * BYTES);
  private final ByteBuffer place = Memory.view(memory.address(), 2 * BYTES);
  private final List<String> said = new ArrayList<>();
  private final byte[] plain = new byte[BYTES];

  private final Arrivals arrivals =
      new Arrivals() {
        @Override
        public long arriving(
            final long id, final long offset, final long bytes, final Runnable stop) {
          return memory.address();
        }

        @Override
        public void arrived(
            final long id, final long offset, final long bytes, final String failure) {
          said.add(failure == null ? "arrived " + bytes : "failed");
        }

        @Override
        public void damaged(final long id, final long offset, final long bytes) {
          said.add("damaged " + bytes);
        }
      };

  @AfterEach
  void nothingIsTaken() {
    assertThat(slabs.taken()).isEqualTo(1);
    memory.release();
    slabs.close();
    device.close();
  }

  private byte[] body(final MessageCodec codec) {
    for (int i = 0; i < BYTES; i++) {
      plain[i] = (byte) random.nextInt(5);
    }
    final ByteBuffer from = ByteBuffer.allocateDirect(BYTES).put(plain).flip();
    final ByteBuffer to = ByteBuffer.allocateDirect(BYTES).order(ByteOrder.LITTLE_ENDIAN);
    place.clear().put(plain);
    to.putInt(Crc32c.of(memory.address(), BYTES));
    final byte[] body = new byte[Integer.BYTES + codec.compress(from, to)];
    to.position(0).get(body);
    return body;
  }

  private void arrive(final int codec, final byte[] body, final int expanded) {
    said.clear();
    place.clear();
    while (place.hasRemaining()) {
      place.put(BEYOND);
    }
    final UploadId id = new UploadId(UploadId.COMPRESSED, codec, 1, 0, body.length, expanded);
    final ArrivingMessage message = ArrivingMessage.of(id, arrivals, Runnable::run, slabs);
    message.bytes(ByteBuffer.wrap(body, 0, body.length / 2));
    message.bytes(ByteBuffer.wrap(body, body.length / 2, body.length - body.length / 2));
    assertThat(message.complete()).isEqualTo(Uploads.Reply.TAKEN);
    for (int i = Math.max(expanded, body.length); i < place.capacity(); i++) {
      assertThat(place.get(i)).isEqualTo(BEYOND);
    }
  }

  @Test
  void itIsExpandedInItsPlace() {
    for (final MessageCodec codec : List.of(MessageCodec.LZ4, MessageCodec.ZSTD)) {
      final byte[] body = body(codec);
      arrive(codec.ordinal(), body, BYTES);
      assertThat(said).containsExactly("arrived " + BYTES);
      final byte[] there = new byte[BYTES];
      place.clear().get(there);
      assertThat(there).isEqualTo(plain);
    }
  }

  @Test
  void oneThatWasDamagedIsAskedForAnew() {
    for (final MessageCodec codec : List.of(MessageCodec.LZ4, MessageCodec.ZSTD)) {
      final byte[] body = body(codec);
      for (int i = 0; i < 200; i++) {
        final int at = random.nextInt(body.length);
        body[at] ^= 4;
        arrive(codec.ordinal(), body, BYTES);
        assertThat(said).containsExactly("damaged " + BYTES);
        body[at] ^= 4;
      }
    }
  }

  @Test
  void oneThatLiesIsDamaged() {
    final byte[] body = body(MessageCodec.LZ4);
    for (final int expanded : new int[] {body.length, BYTES - 1, BYTES + 1}) {
      arrive(MessageCodec.LZ4.ordinal(), body, expanded);
      assertThat(said).containsExactly("damaged " + expanded);
    }
    for (final int codec : new int[] {0, MessageCodec.ZSTD.ordinal(), 3}) {
      arrive(codec, body, BYTES);
      assertThat(said).containsExactly("damaged " + BYTES);
    }
    arrive(MessageCodec.LZ4.ordinal(), new byte[3], BYTES);
    assertThat(said).containsExactly("damaged " + BYTES);
  }
}
