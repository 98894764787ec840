package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import io.zerohop.shuffle.transport.ucx.engine.LoopbackTest;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.NetworkInterface;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Two engines in one process read each other's memory. */
@Timeout(60)
class UcxEngineTest {
  private static final int BYTES = 3 << 20;

  private UcxEngine owner;
  private UcxEngine reader;

  @BeforeEach
  void start() {
    owner = TestUcx.start();
    reader = TestUcx.start();
  }

  @AfterEach
  void stop() {
    // Where there is no libucx an assumption has kept them from being opened.
    for (final UcxEngine engine : new UcxEngine[] {reader, owner}) {
      if (engine != null) {
        engine.close();
      }
    }
  }

  private static UnsafeBuffer random(final int seed) {
    final byte[] bytes = new byte[BYTES];
    new Random(seed).nextBytes(bytes);
    final UnsafeBuffer buffer = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    buffer.putBytes(0, bytes);
    return buffer;
  }

  private static UnsafeBuffer empty() {
    return new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
  }

  private static String await(final CompletableFuture<String> end) throws Exception {
    return end.get(20, TimeUnit.SECONDS);
  }

  private static Completion completing(final CompletableFuture<String> end) {
    return failure -> end.complete(failure == null ? "" : failure);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 64, 900, 4 << 10, 1 << 20, BYTES - 8})
  void getsBytesOfRegisteredMemory(final int bytes) throws Exception {
    final UnsafeBuffer from = random(1);
    final UnsafeBuffer to = empty();
    try (UcxMemory memory = owner.register(Tier.HOST, from.addressOffset(), BYTES);
        UcxEndpoint endpoint = reader.connect(owner.address(), lost -> {})) {
      final CompletableFuture<String> end = new CompletableFuture<>();
      endpoint.get(
          memory.key(), from.addressOffset() + 8, to.addressOffset(), bytes, null, completing(end));
      assertThat(await(end)).isEmpty();
    }
    for (int i = 0; i < BYTES - 8; i++) {
      assertThat(to.getByte(i)).isEqualTo(i < bytes ? from.getByte(i + 8) : 0);
    }
    assertThat(reader.pending()).isZero();
  }

  /** The keys that they use stay until then, however long it takes. Often: it is a race. */
  @Test
  void getsOfAnEndpointThatIsClosedUnderThemEndOnceEach() throws Exception {
    final UnsafeBuffer from = random(1);
    final List<AtomicInteger> ends = new ArrayList<>();
    final List<UnsafeBuffer> buffers = Stream.generate(UcxEngineTest::empty).limit(4).toList();
    try (UcxMemory memory = owner.register(Tier.HOST, from.addressOffset(), BYTES)) {
      final long begin = System.nanoTime();
      for (int round = 0; round < 300 && System.nanoTime() - begin < 10e9; round++) {
        final UcxEndpoint endpoint = reader.connect(owner.address(), lost -> {});
        for (final UnsafeBuffer to : buffers) {
          final AtomicInteger end = new AtomicInteger();
          ends.add(end);
          endpoint.get(
              memory.key(),
              from.addressOffset(),
              to.addressOffset(),
              BYTES,
              null,
              failure -> end.incrementAndGet());
        }
        endpoint.close();
      }
      TestNodes.eventually("all gets have ended", () -> reader.pending() == 0);
      // Who asked is told a moment later.
      TestNodes.eventually("all were told", () -> ends.stream().noneMatch(end -> end.get() == 0));
      assertThat(ends).allSatisfy(end -> assertThat(end).hasValue(1));
    }
    LoopbackTest.run(reader);
    java.lang.ref.Reference.reachabilityFence(buffers);
  }

  /** An executor that is killed cannot remove it at its end. */
  @Test
  void nothingIsLeftOfTheLibraryThatJucxUnpacks() throws Exception {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      final List<String> loaded =
          lines
              .filter(line -> line.contains("/libjucx"))
              .map(line -> line.substring(line.indexOf('/')))
              .distinct()
              .toList();
      assertThat(loaded).isNotEmpty().allMatch(file -> file.endsWith(" (deleted)"));
      assertThat(loaded).allMatch(file -> Files.notExists(Path.of(file).getParent()));
    }
  }

  @Test
  void aBindingThatFitsPassesItsTest() {
    LoopbackTest.run(reader);
  }

  /** Nor are settings that this libucx does not know. */
  @Test
  void adaptersThatAreNotThereAreNoObstacle() throws Exception {
    // Without TCP there would be no device at all.
    assumeTrue(System.getenv("UCX_TLS") == null, "UCX_TLS is set here");
    final NetworkInterface own = networkInterface();
    assumeTrue(own != null, "this host has no network but the loopback, which will not do");
    final AdapterChoice gone = new AdapterChoice(List.of("gone_0:1", "gone_1:1"), true, "a test");
    try (UcxEngine engine = TestUcx.start(new NetworkDevices(own.getName(), gone))) {
      LoopbackTest.run(engine);
    }
  }

  /** One that others may reach; null if there is none. */
  private static NetworkInterface networkInterface() throws IOException {
    return NetworkInterface.networkInterfaces()
        .filter(
            each ->
                each.inetAddresses()
                    .anyMatch(it -> it instanceof Inet4Address && !it.isLoopbackAddress()))
        .findFirst()
        .orElse(null);
  }

  @Test
  void whatIsUnderWayToALostPeerEndsOnce() throws Exception {
    final UnsafeBuffer from = random(1);
    final UnsafeBuffer to = empty();
    final UcxMemory memory = owner.register(Tier.HOST, from.addressOffset(), BYTES);
    final CompletableFuture<String> lost = new CompletableFuture<>();
    try (UcxEndpoint endpoint = reader.connect(owner.address(), lost::complete)) {
      final CompletableFuture<String> first = new CompletableFuture<>();
      endpoint.get(
          memory.key(), from.addressOffset(), to.addressOffset(), BYTES, null, completing(first));
      assertThat(await(first)).isEmpty();
      memory.close();
      owner.close();
      final CompletableFuture<String> second = new CompletableFuture<>();
      endpoint.get(
          memory.key(), from.addressOffset(), to.addressOffset(), BYTES, null, completing(second));
      assertThat(await(second)).isNotEmpty();
      final CompletableFuture<String> third = new CompletableFuture<>();
      endpoint.get(
          memory.key(), from.addressOffset(), to.addressOffset(), BYTES, null, completing(third));
      assertThat(await(third)).isNotEmpty();
    }
    assertThat(reader.pending()).isZero();
  }
}
