package io.zerohop.device.cuda;

import io.zerohop.device.ContractPeer;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;

/** The other process of the fault tests. */
public final class CudaPeer {
  static final long SEGMENT_ID = 9;
  static final int BYTES = 8 << 20;
  static final Duration LIMIT = Duration.ofSeconds(60);
  private static final int BLOCK_BYTES = 2_011;

  private CudaPeer() {}

  /** Arguments: export|read, base folder of sockets. */
  public static void main(final String[] arguments) throws Exception {
    final Path base = Path.of(arguments[1]);
    if (arguments[0].equals("export")) {
      export(base);
    } else {
      read(base);
    }
  }

  static byte[] pattern() {
    final byte[] pattern = new byte[BYTES];
    new Random(11).nextBytes(pattern);
    return pattern;
  }

  /** Copies that cover a pattern, in blocks of an odd size. */
  static void addBlocks(final CopyBatch batch, final long from, final long to) {
    for (int at = 0; at < BYTES; at += BLOCK_BYTES) {
      batch.add(from + at, to + at, Math.min(BLOCK_BYTES, BYTES - at));
    }
  }

  private static void export(final Path base) throws Exception {
    try (CudaDevice device = new CudaDevice(0, 24);
        Segment segment = device.allocate(BYTES)) {
      new CudaUnderTest().write(segment.address(), pattern());
      ContractPeer.serve(base, SEGMENT_ID, segment);
    }
  }

  /** Gathers from the parent's memory until it is killed. */
  private static void read(final Path base) {
    try (CudaDevice device = new CudaDevice(0, 24);
        SocketFolder folder = SocketFolder.open(base, "app");
        PeerLink link =
            PeerLink.connect(
                folder.socket("parent"), "child", "parent", SegmentTable.SECRET, LIMIT);
        Segment from = device.map(link.fetch(SEGMENT_ID, LIMIT), "a peer");
        Segment to = device.allocate(BYTES);
        CopyStream stream = device.openStream("read")) {
      final CopyBatch batch = stream.newBatch();
      addBlocks(batch, from.address(), to.address());
      for (long round = 0; link.alive(); round++) {
        stream.submit(batch);
        if (round == 20) {
          System.out.println("reading");
        }
        if (round % 16 == 0) {
          stream.synchronize(LIMIT);
        }
      }
    }
  }
}
