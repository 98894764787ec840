package io.zerohop.spark.rdmaproof;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.spark.doctor.Machine;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import io.zerohop.spark.rdmaproof.ProofCommand.OtherSide;
import io.zerohop.spark.rdmaproof.ProofLine.Check;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import io.zerohop.spark.rdmaproof.ProofLine.Result;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A listener and what connects to it, on one host, with workers that are processes. */
@Timeout(120)
class RdmaProofTest {
  private static final byte[] SECRET = "s".repeat(32).getBytes(StandardCharsets.UTF_8);
  private static final int NO_SUCH_GPU = 99;
  private static final Duration LIMIT = Duration.ofSeconds(100);

  private final StringWriter said = new StringWriter();
  private Listener listener;
  private CompletableFuture<Boolean> served;

  @BeforeEach
  void listen() throws IOException {
    listener =
        new Listener(
            InetAddress.getByName(Machine.ownAddress()),
            0,
            SECRET,
            NO_SUCH_GPU,
            LIMIT,
            Clock.system(),
            new PrintWriter(said, true));
    served =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return listener.serve();
              } catch (final IOException e) {
                throw new CompletionException(e);
              }
            });
  }

  @AfterEach
  void close() throws IOException {
    listener.close();
  }

  private ProvenChannel connect() throws IOException {
    return ProvenChannel.connect(listener.address(), SECRET, Duration.ofSeconds(20));
  }

  private static void assumeLibucx() {
    boolean there = true;
    try {
      UcxLoader.look();
    } catch (final ZerohopException e) {
      there = false;
    }
    assumeTrue(there, "there is no libucx of 1.19 or later");
  }

  private static Set<ProcessHandle> children() {
    return ProcessHandle.current()
        .descendants()
        .filter(ProcessHandle::isAlive)
        .collect(Collectors.toSet());
  }

  /** Over TCP all works but that a get ends while its owner is stopped, and that is found. */
  @Test
  void gets() throws Exception {
    assumeLibucx();
    final Set<ProcessHandle> before = children();
    final List<ProofLine> findings = new ArrayList<>();
    try (ProvenChannel channel = connect()) {
      final String own = channel.localAddress().getAddress().getHostAddress();
      final Side there = new OtherSide(channel, "A");
      final Side here = new Side.Own("B", own, NO_SUCH_GPU, LIMIT, new PrintWriter(said, true));
      assertThat(there.facts().isOtherHost(here.facts())).isFalse();
      final boolean adapter = RdmaDevices.any();
      final Trial.Extent extent = new Trial.Extent(4 << 20, 2, 20);
      new Trial(there, here, MemoryKind.HOST, extent, adapter, Clock.system(), findings::add).run();
    }
    assertThat(findings)
        .filteredOn(it -> it.result() != Result.PASSED)
        .extracting(ProofLine::check)
        .isEqualTo(RdmaDevices.any() ? List.of() : List.of(Check.ONE_SIDED));
    assertThat(findings)
        .extracting(ProofLine::check)
        .contains(Check.REGISTER, Check.CONTENTS, Check.RATE, Check.KILLED);
    assertThat(served.get(20, TimeUnit.SECONDS)).isTrue();
    assertThat(children()).as("processes that are left").isSubsetOf(before);
  }

  /** Each may say nothing for ten seconds, and none holds the one that knows the secret up. */
  @Test
  void silentStrangersDoNotHoldTheListener() throws Exception {
    final List<Socket> silent = new ArrayList<>();
    try {
      for (int i = 0; i < 100; i++) {
        silent.add(new Socket(listener.address().getAddress(), listener.address().getPort()));
      }
      try (ProvenChannel channel =
          ProvenChannel.connect(listener.address(), SECRET, Duration.ofSeconds(8))) {
        channel.send(List.of(Listener.FACTS));
        assertThat(channel.receive(LIMIT)).startsWith(ProofWords.OK);
      }
      assertThat(served.get(20, TimeUnit.SECONDS)).isTrue();
      for (final Socket each : silent) {
        each.setSoTimeout(5_000);
        assertThat(each.getInputStream().read()).as("the end of a stranger").isEqualTo(-1);
      }
    } finally {
      for (final Socket each : silent) {
        each.close();
      }
    }
  }

  @Test
  void aQuestionThatIsNoneIsAnswered() throws Exception {
    try (ProvenChannel channel = connect()) {
      for (final List<String> question :
          List.of(List.of(Listener.START), List.of(Listener.START, "\u009b2J"), List.of(""))) {
        channel.send(question);
        assertThat(channel.receive(LIMIT)).startsWith(ProofWords.FAILED);
      }
    }
    assertThat(served.get(20, TimeUnit.SECONDS)).isTrue();
    assertThat(said.toString()).doesNotContain("\u009b");
  }

  /** It knows the secret, asks, and takes no answer. */
  @Test
  void oneThatDoesNotReadHoldsNobodyBeyondTheLimit() throws Exception {
    final Duration limit = Duration.ofSeconds(6);
    try (Listener own =
        new Listener(
            InetAddress.getLoopbackAddress(),
            0,
            SECRET,
            NO_SUCH_GPU,
            limit,
            Clock.system(),
            new PrintWriter(said, true))) {
      final CompletableFuture<Void> asking =
          CompletableFuture.runAsync(
              () -> {
                try (ProvenChannel channel = ProvenChannel.connect(own.address(), SECRET, LIMIT)) {
                  while (true) {
                    channel.send(List.of("x".repeat(1 << 19)));
                  }
                } catch (final IOException e) {
                  return; // Its connection has ended.
                }
              });
      final CompletableFuture<Boolean> ended =
          CompletableFuture.supplyAsync(
              () -> {
                try {
                  return own.serve();
                } catch (final IOException e) {
                  throw new CompletionException(e);
                }
              });
      assertThat(ended.get(20, TimeUnit.SECONDS)).isTrue();
      asking.get(20, TimeUnit.SECONDS);
    }
  }

  /** Such as what UCX says of the way that it takes. */
  @Test
  void whatAWorkerPrintsIsPassedOn() throws Exception {
    final Process process =
        new ProcessBuilder("sh", "-c", "echo 'by \033[31mtcp' >&2; echo to stdout").start();
    try (ChildProcess worker = new ChildProcess(process, new PrintWriter(said, true))) {
      assertThatThrownBy(() -> worker.ask(LIMIT, "worker"))
          .hasMessageContaining("the process has ended");
      final Deadline end = Deadline.in(Duration.ofSeconds(20));
      end.await(
          () -> said.toString().lines().count() == 2,
          millis -> Clock.system().sleep(Duration.ofMillis(5)));
    }
    assertThat(said.toString().lines())
        .containsExactlyInAnyOrder("worker: by  [31mtcp", "worker: to stdout");
  }

  /** A stranger before it does not end the listener; a worker that cannot start says why. */
  @Test
  void aWorkerThatCannotStartSaysWhy() throws Exception {
    final Set<ProcessHandle> before = children();
    try (Socket stranger =
        new Socket(listener.address().getAddress(), listener.address().getPort())) {
      stranger.getOutputStream().write(new byte[1000]);
      stranger.shutdownOutput();
      try (ProvenChannel channel = connect()) {
        final Side there = new OtherSide(channel, "A");
        assertThatThrownBy(() -> there.start(MemoryKind.GPU))
            .isInstanceOf(ProofException.class)
            .hasMessageContaining("cuda");
        channel.send(List.of("open", "/etc/passwd"));
        assertThat(channel.receive(LIMIT))
            .containsExactly(ProofWords.FAILED, "there is no request open");
        channel.send(List.of(Listener.KILL, "1"));
        assertThat(channel.receive(LIMIT))
            .containsExactly(ProofWords.FAILED, "there is no process 1");
      }
    }
    assertThat(served.get(20, TimeUnit.SECONDS)).isTrue();
    assertThat(said.toString()).contains("no proof from").doesNotContain("sssss");
    assertThat(children()).as("processes that are left").isSubsetOf(before);
  }
}
