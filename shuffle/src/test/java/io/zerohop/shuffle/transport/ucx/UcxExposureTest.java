package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.LoopbackTest;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What UCX lets others do who know its address, beyond what Zerohop asks it for. */
@Timeout(60)
@SuppressWarnings("try") // A flight is there to be closed.
class UcxExposureTest {
  private static final int BYTES = 64 << 10;

  /** A local address in /proc/net/tcp, and the state of a socket that listens. */
  private static final String LISTENING = "0A";

  private static final byte SECRET = 0x5a;

  private final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
  private final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));

  /** The stranger has reached the worker, and knows the address, but has no key. */
  @Test
  void overAnAdapterAWrongKeyGetsNothing() throws Exception {
    try (UcxEngine owner = TestUcx.start();
        UcxMemory memory = register(owner)) {
      assumeTrue(owner.rdma(), "no RDMA adapter here");
      final byte[] right = memory.key();
      // UCX's key of an adapter ends with the adapter's own key and one for atomics, 4 bytes each.
      // Since 1.20 a byte follows.
      int row = 0;
      int longest = 0;
      for (int i = 1; i <= Long.BYTES + 1; i++) {
        final byte[] wrong = right.clone();
        wrong[wrong.length - i] ^= 1;
        final boolean got = get(owner, wrong).isEmpty() && to.getByte(0) == SECRET;
        row = got ? 0 : row + 1;
        longest = Math.max(longest, row);
        to.setMemory(0, BYTES, (byte) 0);
      }
      assertThat(longest).as("bytes of the key that matter").isGreaterThanOrEqualTo(Integer.BYTES);
      LoopbackTest.run(owner);
    }
  }

  private UcxMemory register(final UcxEngine owner) {
    from.setMemory(0, BYTES, SECRET);
    return owner.register(Tier.HOST, from.addressOffset(), BYTES);
  }

  /** An engine that is not waited for at its end, although what it was asked for never ends. */
  private record Flown(UcxEngine engine, TestClock clock) implements AutoCloseable {
    @Override
    public void close() {
      try (TestClock.Flight flight = clock.fly()) {
        engine.close();
      }
    }
  }

  /** A stranger's attempt: why it failed; empty if it did not. */
  private String get(final UcxEngine owner, final byte[] key) throws Exception {
    final TestClock clock = TestClock.running();
    try (Flown stranger = new Flown(TestUcx.start(clock), clock);
        UcxEndpoint endpoint = stranger.engine().connect(owner.address(), lost -> {})) {
      final CompletableFuture<String> end = new CompletableFuture<>();
      endpoint.get(
          key,
          from.addressOffset(),
          to.addressOffset(),
          BYTES,
          null,
          failure -> end.complete(failure == null ? "" : failure));
      return end.completeOnTimeout("no answer", 3, TimeUnit.SECONDS).get(10, TimeUnit.SECONDS);
    }
  }

  @Test
  void itListensOnTheInterfaceOfItsOwnAddressOnly() throws Exception {
    final InetAddress own = ownAddress();
    assumeTrue(own != null, "this host has no network but the loopback");
    assumeTrue(System.getenv("UCX_TLS") == null, "UCX_TLS is set here");
    final Set<String> before = listening();
    try (UcxEngine engine =
        TestUcx.start(NetworkDevices.of(own.getHostAddress(), null).orElseThrow())) {
      final Set<String> opened = listening();
      opened.removeAll(before);
      assertThat(opened).as("of %s", engine.describe()).isNotEmpty();
      assertThat(opened.stream().map(at -> at.split(":")[0]).collect(Collectors.toSet()))
          .containsExactly(hex(own));
    }
  }

  /** An IPv4 address of this host that others may reach; null if there is none. */
  private static InetAddress ownAddress() throws IOException {
    return NetworkInterface.networkInterfaces()
        .flatMap(NetworkInterface::inetAddresses)
        .filter(address -> address instanceof Inet4Address && !address.isLoopbackAddress())
        .findFirst()
        .orElse(null);
  }

  /** Addresses and ports at which this process listens, as Linux writes them. */
  private static Set<String> listening() throws IOException {
    final Set<String> sockets = new HashSet<>();
    try (DirectoryStream<Path> open = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
      for (final Path descriptor : open) {
        try {
          sockets.add(Files.readSymbolicLink(descriptor).toString());
        } catch (final NoSuchFileException e) {
          // It was closed meanwhile.
        }
      }
    }
    final List<String> lines = Files.readAllLines(Path.of("/proc/net/tcp"));
    return lines.stream()
        .map(line -> line.trim().split("\\s+"))
        .filter(fields -> sockets.contains("socket:[" + fields[9] + "]"))
        .filter(fields -> fields[3].equals(LISTENING))
        .map(fields -> fields[1])
        .collect(Collectors.toSet());
  }

  private static String hex(final InetAddress address) {
    final int value = ByteBuffer.wrap(address.getAddress()).getInt();
    return String.format(Locale.ROOT, "%08X", Integer.reverseBytes(value));
  }
}
