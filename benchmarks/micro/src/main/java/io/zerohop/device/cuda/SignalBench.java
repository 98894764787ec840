package io.zerohop.device.cuda;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstreamWaitValue_flags;
import jcuda.driver.JCudaDriver;

/** Round trips of signals between two GPUs, or on one where there is only one. */
final class SignalBench {
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final int ROUNDS = 2_000;

  private final BenchFile file;
  private final BenchGpu first;
  private final BenchGpu second;
  private final Segment firstWord;
  private final Segment secondWord;
  private final Segment firstSeen;
  private final Segment secondSeen;

  private SignalBench(final BenchFile file, final BenchGpu first, final BenchGpu second) {
    this.file = file;
    this.first = first;
    this.second = second;
    firstWord = first.source;
    secondWord = second.source;
    secondSeen = first.map(second);
    firstSeen = second.map(first);
  }

  static void run(final BenchFile file) throws IOException {
    final int peer = CudaDriver.devices() > 1 ? 1 : 0;
    try (BenchGpu first = new BenchGpu(0, 1);
        BenchGpu second = new BenchGpu(peer, 1)) {
      final SignalBench bench = new SignalBench(file, first, second);
      bench.put("in_kernel", Samples.of(bench.inKernel()));
      bench.put("stream_ordered", Samples.of(bench::streamOrdered));
      bench.put("launch_each", Samples.of(bench::launches));
    }
  }

  private void put(final String name, final Samples micros) {
    file.row(
        "case",
        name,
        "gpus",
        first.ordinal == second.ordinal ? 1 : 2,
        "round_trip_us",
        micros.median(),
        "round_trip_us_least",
        micros.least(),
        "round_trip_us_most",
        micros.most());
  }

  /** Both sides stay in one kernel; each polls its own memory and writes to the other's. */
  private java.util.function.DoubleSupplier inKernel() throws IOException {
    final CUfunction one = pingpong(first);
    final CUfunction other = pingpong(second);
    final PinnedMemory state = PinnedMemory.allocate(first.context, 32);
    return () -> {
      zero();
      launch(second, other, secondWord.address(), firstSeen.address(), 0, state);
      final double millis =
          first.millis(
              first.plain,
              () -> launch(first, one, firstWord.address(), secondSeen.address(), 1, state));
      second.context.enter();
      BenchGpu.check(JCudaDriver.cuStreamSynchronize(second.plain));
      if (state.buffer().getInt(0) != 0) {
        throw new IllegalStateException("ping-pong did not end");
      }
      return millis * 1e3 / ROUNDS;
    };
  }

  private void zero() {
    for (final BenchGpu gpu : List.of(first, second)) {
      gpu.context.enter();
      BenchGpu.check(JCudaDriver.cuMemsetD8(Addresses.device(gpu.source.address()), (byte) 0, 64));
    }
  }

  private static CUfunction pingpong(final BenchGpu gpu) throws IOException {
    gpu.context.enter();
    final CUmodule module = new CUmodule();
    try (InputStream in = SignalBench.class.getResourceAsStream("/pingpong.fatbin")) {
      BenchGpu.check(JCudaDriver.cuModuleLoadData(module, in.readAllBytes()));
    }
    final CUfunction function = new CUfunction();
    BenchGpu.check(JCudaDriver.cuModuleGetFunction(function, module, "pingpong"));
    return function;
  }

  private static void launch(
      final BenchGpu gpu,
      final CUfunction function,
      final long mine,
      final long theirs,
      final int isFirst,
      final PinnedMemory state) {
    gpu.context.enter();
    final Pointer arguments =
        Pointer.to(
            Pointer.to(new long[] {mine}),
            Pointer.to(new long[] {theirs}),
            Pointer.to(new int[] {ROUNDS}),
            Pointer.to(new int[] {isFirst}),
            Pointer.to(new long[] {state.address()}),
            Pointer.to(new long[] {LIMIT.toNanos()}));
    BenchGpu.check(
        JCudaDriver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, gpu.plain, arguments, null));
  }

  /** The streams' front ends wait and write; no kernel runs. */
  private double streamOrdered() {
    zero();
    final int rounds = ROUNDS / 10;
    for (int round = 1; round <= rounds; round++) {
      second.context.enter();
      BenchGpu.check(
          JCudaDriver.cuStreamWaitValue32(
              second.plain,
              Addresses.device(secondWord.address()),
              round,
              CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ));
      BenchGpu.check(
          JCudaDriver.cuStreamWriteValue32(
              second.plain, Addresses.device(firstSeen.address()), round, 0));
    }
    final double millis =
        first.millis(
            first.plain,
            () -> {
              for (int round = 1; round <= rounds; round++) {
                BenchGpu.check(
                    JCudaDriver.cuStreamWriteValue32(
                        first.plain, Addresses.device(secondSeen.address()), round, 0));
                BenchGpu.check(
                    JCudaDriver.cuStreamWaitValue32(
                        first.plain,
                        Addresses.device(firstWord.address()),
                        round,
                        CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ));
              }
            });
    second.context.enter();
    BenchGpu.check(JCudaDriver.cuStreamSynchronize(second.plain));
    return millis * 1e3 / rounds;
  }

  /** A launch for every wait and raise, through the device layer. */
  private double launches() {
    zero();
    final int rounds = ROUNDS / 10;
    try (CopyStream one = first.device.openStream("one");
        CopyStream other = second.device.openStream("other")) {
      final Signal firstOwn = first.device.signal(firstWord, 0);
      final Signal firstRemote = second.device.signal(firstSeen, 0);
      final Signal secondOwn = second.device.signal(secondWord, 0);
      final Signal secondRemote = first.device.signal(secondSeen, 0);
      final long start = System.nanoTime();
      for (int round = 1; round <= rounds; round++) {
        one.submit(one.newBatch(), List.of(), List.of(new SignalEpoch(secondRemote, round)), LIMIT);
        other.submit(
            other.newBatch(),
            List.of(new SignalEpoch(secondOwn, round)),
            List.of(new SignalEpoch(firstRemote, round)),
            LIMIT);
        one.await(firstOwn, round, LIMIT);
      }
      one.synchronize(LIMIT);
      other.synchronize(LIMIT);
      return (System.nanoTime() - start) / 1e3 / rounds;
    }
  }
}
