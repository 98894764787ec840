package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.ChildJvm;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;

/** Another process whose memory can be got, and that can be stopped and killed. */
final class MemoryOwner implements AutoCloseable {
  /** Bytes that it has. */
  static final int BYTES = 16 << 20;

  private static final int LIFE_MINUTES = 2;

  private final ChildJvm process;
  private final byte[] worker;
  private final byte[] key;
  private final long from;

  private MemoryOwner(final ChildJvm process) throws Exception {
    this.process = process;
    final String[] words = process.line().split(":");
    final HexFormat hex = HexFormat.of();
    worker = hex.parseHex(words[0]);
    key = hex.parseHex(words[1]);
    from = Long.parseLong(words[2]);
  }

  static MemoryOwner start() throws Exception {
    return new MemoryOwner(ChildJvm.start(List.of(), MemoryOwner.class));
  }

  UcxEndpoint connect(final UcxEngine reader) {
    return reader.connect(worker, lost -> {});
  }

  /** Gets as many bytes from its beginning. */
  void get(
      final UcxEndpoint endpoint, final UnsafeBuffer to, final int bytes, final Completion end) {
    endpoint.get(key, from, to.addressOffset(), bytes, null, end);
  }

  /** What it has at a place. */
  static byte at(final int place) {
    return (byte) (place * 131 + (place >> 12) + 7);
  }

  /** SIGSTOP; returns when it is. */
  void stop() throws Exception {
    ChildJvm.stop(process.pid());
  }

  /** SIGKILL. */
  void kill() throws Exception {
    ChildJvm.signal(process.pid(), "KILL");
  }

  @Override
  public void close() throws IOException {
    process.close();
  }

  /** The process: says where its memory is and how it is got, and stays. */
  public static void main(final String[] arguments) throws Exception {
    final UnsafeBuffer memory = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    for (int i = 0; i < BYTES; i++) {
      memory.putByte(i, at(i));
    }
    try (UcxEngine engine = TestUcx.start();
        UcxMemory registered = engine.register(Tier.HOST, memory.addressOffset(), BYTES)) {
      final HexFormat hex = HexFormat.of();
      System.out.println(
          hex.formatHex(engine.address())
              + ":"
              + hex.formatHex(registered.key())
              + ":"
              + memory.addressOffset());
      Thread.sleep(TimeUnit.MINUTES.toMillis(LIFE_MINUTES));
    }
  }
}
