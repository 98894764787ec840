package io.zerohop.spark.rdmaproof;

import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A host whose workers do all right, but for what a test wants. */
class FakeSide implements Side {
  private final String name;
  private final Map<String, String> facts;

  /** Those that were started, closed or not. */
  final List<FakeWorker> workers = new ArrayList<>();

  FakeSide(final String name, final Map<String, String> facts) {
    this.name = name;
    this.facts = facts;
  }

  /** A host that has all. */
  static FakeSide complete(final String name) {
    return new FakeSide(
        name,
        Map.of(
            HostFacts.BOOT,
            "boot of " + name,
            HostFacts.HARDWARE,
            "mlx5_0:1",
            HostFacts.SOFTWARE,
            "none",
            HostFacts.PEERMEM,
            "true",
            HostFacts.DMA_BUF,
            "false"));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public HostFacts facts() {
    return new HostFacts(facts);
  }

  @Override
  public Worker start(final MemoryKind kind) {
    final FakeWorker worker = worker();
    workers.add(worker);
    return worker;
  }

  /** For tests to give another one. */
  FakeWorker worker() {
    return new FakeWorker();
  }

  /** Answers as if gets were one-sided. */
  static class FakeWorker implements Side.Worker {
    private boolean stopped;
    private boolean killed;
    private boolean closed;

    @Override
    public List<String> ask(final Duration limit, final String... words) {
      if (closed) {
        throw new ProofException("it is closed");
      }
      return answer(words);
    }

    /** For tests to answer otherwise. */
    List<String> answer(final String... words) {
      return switch (words[0]) {
        case "worker" -> List.of("00", "libucx 1.20.1 without CUDA");
        case "memory" -> List.of("4096", "00", "1000000");
        case "get" -> List.of("1000", "-1");
        case "rate" -> List.of("10", "10000", "1000");
        case "under-way" -> List.of("5");
        case "await" -> List.of("0", "5", "0", "0", "2000000");
        default -> List.of();
      };
    }

    @Override
    public void stop() {
      stopped = true;
    }

    @Override
    public void resume() {
      stopped = false;
    }

    @Override
    public boolean isStopped() {
      return stopped;
    }

    @Override
    public void kill() {
      killed = true;
    }

    boolean isKilled() {
      return killed;
    }

    @Override
    public void close() {
      closed = true;
    }

    boolean isClosed() {
      return closed;
    }
  }
}
