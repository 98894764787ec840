package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.Topology;
import io.zerohop.device.Topology.Reach;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.GpuCheck.Gpus;
import io.zerohop.spark.doctor.Settings.Wanted;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Measures the rate of each path on this machine. What is expected is what a machine with nothing
 * else to do has at least: a core's rate for the host, three fifths of the wire for links (two H100
 * came to 256 to 329 GB/s over 18 of them).
 */
final class RateCheck {
  private static final double GIGA = 1e9;

  /** With blocks' checksums, by one thread. */
  static final double HOST = Link.PEER_HOST.expected() / GIGA;

  static final double UCX_LOOPBACK = 1;
  static final double TCP_LOOPBACK = 1;

  /** Within a GPU by 24 of its multiprocessors. */
  static final double IN_GPU = Link.PEER_GPU.expected() / GIGA;

  /** Of each NVLink of the third generation and later; 25 on the wire. */
  static final double EACH_NVLINK = Link.PEER_NVLINK.expected() / GIGA;

  /** Over the PCI bus, third generation, 16 lanes. */
  static final double PCIE = Link.PEER_PCIE.expected() / GIGA;

  private static final int MIB = 1 << 20;
  private static final int MAX_BYTES = 256 * MIB;
  private static final int MIN_BYTES = 16 * MIB;
  private static final int SHARE = 8;

  private RateCheck() {}

  /** Bytes to move, so that the machine is left enough memory. */
  private static int bytes() {
    final long share = AvailableMemory.bytes() / SHARE / MIB * MIB;
    return (int) Math.max(MIN_BYTES, Math.min(MAX_BYTES, share));
  }

  /** In place, by the owner and by a peer. */
  static Check host(final Wanted wanted) {
    return notes -> {
      try (NodePair nodes = new NodePair(wanted.conf().socketDir(), bytes())) {
        nodes.readAsPeer(); // The first time memory is mapped, and code is compiled.
        nodes.readLocally();
        add(notes, new Rate("local", "host", "host", nodes.readLocally(), HOST));
        add(notes, new Rate("peer", "host", "host", nodes.readAsPeer(), HOST));
      } catch (final ZerohopException e) {
        notes.add(Item.RATES.skip(Message.of("host memory was not measured").because(e)));
      }
    };
  }

  /** Returns the check of each pair of GPUs, each by itself, and from the host. */
  static Check gpus(final Gpus gpus) {
    return gpus(gpus, bytes());
  }

  static Check gpus(final Gpus gpus, final int bytes) {
    return notes -> {
      if (gpus.absence() != null) {
        return;
      }
      final List<Gpus.Gpu> open = new ArrayList<>();
      try {
        for (int ordinal = 0; ordinal < gpus.count(); ordinal++) {
          open.add(gpus.open(ordinal));
        }
        final Topology topology = gpus.topology();
        for (final Gpus.Gpu owner : open) {
          for (final Gpus.Gpu reader : open) {
            pair(notes, owner, reader, topology, bytes);
          }
        }
      } catch (final ZerohopException e) {
        notes.add(Item.RATES.skip(Message.of("GPU memory was not measured").because(e)));
      } finally {
        open.forEach(Gpus.Gpu::close);
      }
    };
  }

  private static void pair(
      final Notes notes,
      final Gpus.Gpu owner,
      final Gpus.Gpu reader,
      final Topology topology,
      final int bytes) {
    final Reach reach = topology.reach(reader.uuid(), owner.uuid());
    if (owner != reader && reach == Reach.HOST) {
      return; // GpuCheck says so.
    }
    final String from = owner.device().name();
    final String to = reader.device().name();
    try (GpuPair pair = new GpuPair(owner.device(), reader.device(), bytes)) {
      if (owner == reader) {
        add(notes, new Rate("local", from, to, pair.measure(), IN_GPU));
        add(notes, new Rate("host", "host", to, pair.measureFromHost(), PCIE));
      } else if (reach == Reach.NVLINK) {
        final double links = topology.links()[index(topology, reader)][index(topology, owner)];
        add(notes, new Rate("nvlink", from, to, pair.measure(), EACH_NVLINK * links));
      } else {
        add(notes, new Rate("pcie", from, to, pair.measure(), PCIE));
      }
    } catch (final ZerohopException e) {
      notes.add(Item.RATES.skip(Message.of("not measured").at(to + " from " + from).because(e)));
    }
  }

  private static int index(final Topology topology, final Gpus.Gpu gpu) {
    return topology.gpus().stream().map(Topology.Gpu::uuid).toList().indexOf(gpu.uuid());
  }

  static Check ucx(final UcxStarter starter) {
    return notes -> {
      try {
        final double rate = UcxRate.measure(starter);
        add(notes, new Rate("ucx", "this process", "itself", rate, UCX_LOOPBACK));
      } catch (final UcxException e) {
        notes.add(Item.RATES.skip("UCX was not measured: see libucx and jucx"));
      }
    };
  }

  /** Over TCP on the loopback, by which Spark's block transfer goes within a host. */
  static Check fallback() {
    return notes -> {
      try {
        add(notes, new Rate("staged", "TCP", "loopback", TcpRate.measure(), TCP_LOOPBACK));
      } catch (final IOException e) {
        notes.add(Item.RATES.skip("TCP on the loopback: " + e));
      }
    };
  }

  private static void add(final Notes notes, final Rate rate) {
    notes.add(rate);
    if (rate.isLow()) {
      notes.add(
          Item.RATES.warn(
              String.format(
                  java.util.Locale.ROOT,
                  "%s from %s to %s has %.1f GB/s, where %.1f are expected",
                  rate.path(),
                  rate.from(),
                  rate.to(),
                  rate.gigabytes(),
                  rate.expected()),
              "measure again when nothing else runs (executors count); then see the line of this"
                  + " path's parts above"));
    }
  }

  /**
   * Bytes over TCP on the loopback, by one connection. The socket connects to its own address, so
   * that no port listens.
   */
  private static final class TcpRate {
    private static final int CHUNK_BYTES = 1 << 18;
    private static final int CHUNKS = 1024;
    private static final int LIMIT_MILLIS = 5_000;

    private TcpRate() {}

    /** In GB/s. */
    static double measure() throws IOException {
      final Socket self = new Socket();
      final Thread writer = Threads.daemon(() -> write(self), "doctor-tcp");
      try (self) {
        self.setSoTimeout(LIMIT_MILLIS);
        self.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        self.connect(self.getLocalSocketAddress(), LIMIT_MILLIS);
        writer.start();
        return read(self.getInputStream());
      } finally {
        Deadline.in(Duration.ofMillis(LIMIT_MILLIS)).await(() -> !writer.isAlive(), writer::join);
      }
    }

    /** Writes all bytes, or ends when the socket does. */
    private static void write(final Socket socket) {
      final byte[] chunk = new byte[CHUNK_BYTES];
      try {
        for (int i = 0; i < CHUNKS; i++) {
          socket.getOutputStream().write(chunk);
        }
      } catch (final IOException e) {
        return; // The reader sees the end too early, and says so.
      }
    }

    private static double read(final InputStream in) throws IOException {
      final byte[] chunk = new byte[CHUNK_BYTES];
      final long begin = System.nanoTime();
      final long all = (long) CHUNKS * CHUNK_BYTES;
      long bytes = 0;
      while (bytes < all) {
        final int read = in.read(chunk);
        if (read < 0) {
          throw new IOException("only " + bytes + " bytes came");
        }
        bytes += read;
      }
      return (double) bytes / (System.nanoTime() - begin);
    }
  }

  /** The rate of gets of this process from itself, as many at once as a reader has under way. */
  static final class UcxRate {
    private static final int REQUESTS = 16;
    private static final int REQUEST_BYTES = 1 << 20;
    private static final int BYTES = REQUESTS * REQUEST_BYTES;
    private static final int ROUNDS = 5;
    private static final long SECONDS = 10;

    private UcxRate() {}

    /**
     * The best of a few rounds, in GB/s.
     *
     * @throws UcxException if UCX cannot be used, or a request fails
     */
    static double measure(final UcxStarter starter) {
      final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
      final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
      try (UcxEngine engine = starter.start(() -> {});
          UcxEndpoint self = engine.connect(engine.address(), lost -> {});
          UcxMemory memory = engine.register(Tier.HOST, from.addressOffset(), BYTES)) {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
          final long begin = System.nanoTime();
          getAll(self, memory, from.addressOffset(), to.addressOffset());
          least = Math.min(least, System.nanoTime() - begin);
        }
        return (double) BYTES / least;
      }
    }

    private static void getAll(
        final UcxEndpoint self, final UcxMemory memory, final long from, final long to) {
      final CompletableFuture<?>[] ends = new CompletableFuture<?>[REQUESTS];
      for (int i = 0; i < REQUESTS; i++) {
        final long offset = (long) i * REQUEST_BYTES;
        final CompletableFuture<@Nullable Void> end = new CompletableFuture<>();
        ends[i] = end;
        self.get(
            memory.key(),
            from + offset,
            to + offset,
            REQUEST_BYTES,
            null,
            failure -> {
              if (failure == null) {
                end.complete(null);
              } else {
                end.completeExceptionally(
                    new UcxException(Message.of("a request failed").because(failure), null));
              }
            });
      }
      try {
        CompletableFuture.allOf(ends).get(SECONDS, TimeUnit.SECONDS);
      } catch (final ExecutionException | TimeoutException e) {
        throw new UcxException(
            Message.of("requests did not end within " + SECONDS + " s").because(e), e);
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new UcxException("interrupted while UCX was measured", e);
      }
    }
  }

  /**
   * The rate of one path, measured once. Immutable.
   *
   * @param from where the bytes lie
   * @param to who reads them
   * @param gigabytes in 1e9 bytes a second
   * @param expected of a machine of that kind with nothing else to do; 0 if nothing is
   */
  public record Rate(String path, String from, String to, double gigabytes, double expected)
      implements Serializable {

    /** Below this part of what is expected something is wrong, and not only busy. */
    private static final double LEAST = 0.5;

    /** Returns whether it is less than half of what is expected. */
    boolean isLow() {
      return gigabytes < LEAST * expected;
    }

    @Override
    public String toString() {
      final String hope = expected > 0 ? String.format(Locale.ROOT, "%.1f", expected) : "-";
      return String.format(
          Locale.ROOT, "%-9s %-14s %-14s %9.1f %9s", path, from, to, gigabytes, hope);
    }
  }
}
