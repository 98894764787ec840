package io.zerohop.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.scale.Rows;
import io.zerohop.shuffle.transport.remote.SendPlaces;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What turns and windows are worth, in virtual time. */
@Timeout(300)
class IncastModelTest {
  private static final int EXECUTORS = Rows.wanted() ? 256 : 96;
  private static final int TASKS = 4;
  private static final long WINDOW = 48L << 20;
  private static final long UNBOUNDED = 1L << 40;
  private static final int BLOCK = 64 << 10;
  private static final int LARGE = 4 << 20;

  /** Fetches of a stage whose tasks begin at once, each reading from every other executor. */
  private static IncastModel stage(final boolean turned) {
    final IncastModel model = new IncastModel(EXECUTORS, SendPlaces::inTurns, WINDOW);
    for (int task = 0; task < EXECUTORS * TASKS; task++) {
      final int reader = task % EXECUTORS;
      final List<BlockSource> listed = new ArrayList<>();
      for (int owner = 0; owner < EXECUTORS; owner++) {
        if (owner != reader) {
          listed.add(model.source(owner, 1, BLOCK));
        }
      }
      model.task(reader, 0, IncastModel.order(listed, task, turned));
    }
    model.run();
    return model;
  }

  @Test
  void readersThatBeginWithOwnersOfTheirOwnWaitLess() {
    try (IncastModel turned = stage(true);
        IncastModel listed = stage(false)) {
      write("stage", "owners turned", turned, 0, EXECUTORS);
      write("stage", "owners as listed", listed, 0, EXECUTORS);
      assertThat(turned.fetches())
          .isEqualTo(listed.fetches())
          .isEqualTo(EXECUTORS * TASKS * (EXECUTORS - 1));
      assertThat(turned.percentile(99, 0, EXECUTORS))
          .isLessThan(listed.percentile(99, 0, EXECUTORS));
      assertThat(turned.seconds()).isLessThan(listed.seconds());
    }
  }

  /** Eight tasks of executor 1 take much of executor 0; the others take little of it, in turns. */
  private static IncastModel crowd(final Supplier<SendPlaces> places, final long window) {
    final IncastModel model = new IncastModel(EXECUTORS, places, window);
    for (int task = 0; task < 8; task++) {
      model.task(1, 0, List.of(model.source(0, 64, LARGE)));
    }
    for (int reader = 2; reader < EXECUTORS; reader++) {
      model.task(reader, 1e6 * (reader % 40), List.of(model.source(0, 1, BLOCK)));
    }
    model.run();
    return model;
  }

  @Test
  void whoReadsLittleDoesNotWaitForWhoReadsMuch() {
    try (IncastModel turns = crowd(SendPlaces::inTurns, WINDOW);
        IncastModel queue = crowd(SendPlaces::firstComeFirstServed, WINDOW);
        IncastModel neither = crowd(SendPlaces::firstComeFirstServed, UNBOUNDED)) {
      write("crowd", "in turns, windows", turns, 2, EXECUTORS);
      write("crowd", "first come first served, windows", queue, 2, EXECUTORS);
      write("crowd", "first come first served, no windows", neither, 2, EXECUTORS);
      final double withTurns = turns.percentile(99, 2, EXECUTORS);
      assertThat(withTurns * 2).isLessThan(queue.percentile(99, 2, EXECUTORS));
      assertThat(withTurns * 2).isLessThan(neither.percentile(99, 2, EXECUTORS));
    }
  }

  private static void write(
      final String scenario,
      final String what,
      final IncastModel model,
      final int firstReader,
      final int endReader) {
    Rows.write(
        "case",
        "incast",
        "scenario",
        scenario,
        "what",
        what,
        "executors",
        EXECUTORS,
        "fetches",
        model.fetches(),
        "p50_ms",
        model.percentile(50, firstReader, endReader),
        "p99_ms",
        model.percentile(99, firstReader, endReader),
        "stage_ms",
        model.seconds() * 1e3);
  }
}
