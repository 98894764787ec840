package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.pool.BorrowedSegments.Loan;
import io.zerohop.shuffle.pool.Pool;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Borrows segments of GPU memory from the executors of this node when the own pool is nearly full,
 * and gives them back. {@link #round} and {@link #sweep} belong to one thread each; all else may be
 * called by any.
 *
 * <p>A lender recalls a segment by its root segment, which {@link #sweep} looks at. One that has
 * ended recalls all: its memory stays readable here, and another executor wants that GPU.
 */
public final class Borrower {
  private static final Logger LOG = LoggerFactory.getLogger(Borrower.class);

  private final Pool pool;
  private final PeerDirectory peers;
  private final Set<Held> held = ConcurrentHashMap.newKeySet();
  private final Queue<Held> returns = new ConcurrentLinkedQueue<>();
  private volatile Runnable hurry = () -> {};
  private volatile Runnable vacate = () -> {};
  private boolean said;

  /**
   * @param pool in GPU memory
   * @param peers who may lend
   */
  public Borrower(final Pool pool, final PeerDirectory peers) {
    this.pool = pool;
    this.peers = peers;
  }

  /**
   * Begins to borrow when the pool is nearly full.
   *
   * @param hurriesRound has {@link #round} called soon; does not wait
   * @param vacates has what lies in recalled segments moved out of them; does not wait
   */
  public void start(final Runnable hurriesRound, final Runnable vacates) {
    hurry = hurriesRound;
    vacate = vacates;
    pool.borrowed().onNearlyFull(hurriesRound);
  }

  /**
   * Gives back what is not used any more, and borrows while the pool wants more. Waits a limited
   * time for each segment.
   */
  public void round() {
    giveBack();
    for (long bytes = pool.borrowed().wanted(); bytes > 0; bytes = pool.borrowed().wanted()) {
      if (!borrow(bytes)) {
        pool.borrowed().nobodyLends();
        return;
      }
    }
  }

  private void giveBack() {
    for (Held loan = returns.poll(); loan != null; loan = returns.poll()) {
      loan.lender.giveBack(loan.id);
    }
  }

  /** Not on the own GPU while others have run out of its memory. */
  private boolean borrow(final long bytes) {
    final boolean isOwnGpuShort = pool.isPaused();
    final List<Lender> lenders =
        peers.lenders(bytes).stream()
            .filter(lender -> !(isOwnGpuShort && lender.isSameGpu()))
            .sorted(
                Comparator.comparing(Lender::isSameGpu)
                    .thenComparing(Comparator.comparing(Lender::room).reversed()))
            .toList();
    for (final Lender lender : lenders) {
      try {
        if (borrow(lender.peer(), bytes)) {
          return true;
        }
      } catch (final ZerohopException e) {
        if (e.category() == Category.FATAL) {
          throw e;
        }
        LOG.debug("{} does not lend {} bytes", lender.peer(), bytes, e);
      }
    }
    return false;
  }

  private boolean borrow(final Peer lender, final long bytes) {
    final Peer.Borrowed borrowed = lender.borrow(bytes);
    if (borrowed == null) {
      return false;
    }
    final Held loan = new Held(lender, borrowed.id());
    held.add(loan);
    final boolean isAdopted;
    try (Undo undo = new Undo(() -> lender.giveBack(loan.id), () -> held.remove(loan))) {
      isAdopted = pool.adopt(borrowed.segment(), loan);
      if (isAdopted) {
        undo.done();
      }
    }
    if (isAdopted && !said) {
      said = true;
      LOG.info("the pool is full and goes on in GPU memory of {} (logged once)", lender);
    }
    return isAdopted;
  }

  /** Looks for segments whose lenders want them back. Does not wait. */
  public void sweep() {
    boolean isRecalled = false;
    for (final Held loan : held) {
      if (loan.lender.recalls(loan.id)) {
        pool.recalled(loan);
        isRecalled = true;
      }
    }
    if (isRecalled) {
      vacate.run();
    }
  }

  /**
   * A peer that has room.
   *
   * @param room bytes that it would lend
   * @param isSameGpu whether its memory is on this executor's own GPU
   */
  record Lender(Peer peer, long room, boolean isSameGpu) {}

  /** A segment until it is closed here. */
  private final class Held implements Loan {
    private final Peer lender;
    private final long id;

    Held(final Peer lender, final long id) {
      this.lender = lender;
      this.id = id;
    }

    @Override
    public void giveBack() {
      held.remove(this);
      returns.add(this);
      hurry.run();
    }
  }
}
