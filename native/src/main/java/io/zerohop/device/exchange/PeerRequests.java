package io.zerohop.device.exchange;

import io.zerohop.device.Message;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.Sockets;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/**
 * The requests to a peer, one at a time, and their answers. A request whose answer does not come in
 * time stays due, and its answer comes before that of any other. What is borrowed and nobody uses
 * is owed until the peer has been told, or the connection ends. Used by one thread at a time, but
 * for {@link #owe} and {@link #isSilent}.
 */
final class PeerRequests {
  /** In place of a segment's id where none is lent. */
  static final long NOT_LENT = 0;

  private static final Set<Frame.Type> ANSWERS =
      EnumSet.of(Frame.Type.SEGMENT, Frame.Type.GONE, Frame.Type.WITHHELD);

  private final String peerName;
  private final FrameChannel channel;
  private final Proofs.Seals seals;

  /** What the peer was asked for and has not answered yet. */
  private @Nullable Request unanswered;

  /** The longest time that somebody waited for that and gave up. */
  private volatile Duration waited = Duration.ZERO;

  /** Loans that nobody here uses any more and that are still to be returned. */
  private final Queue<Long> owed = new ConcurrentLinkedQueue<>();

  /** Requests so far, which is the number of the last one. */
  private long requests;

  PeerRequests(final String peerName, final FrameChannel channel, final Proofs.Seals seals) {
    this.peerName = peerName;
    this.channel = channel;
    this.seals = seals;
  }

  /** Has a loan given back, which nobody here uses. Does not wait. */
  void owe(final long segmentId) {
    owed.add(segmentId);
  }

  /** Whether an answer did not come in time, and has not been taken since. */
  boolean isSilent() {
    return !waited.isZero();
  }

  /**
   * Asks, once nothing else is due.
   *
   * @param limit how long may be waited, for what was asked before as well
   * @param deadline when that is over
   */
  Answer ask(final Request request, final Duration limit, final Deadline deadline) {
    return settle(limit, deadline)
        ? send(request, limit, deadline)
        : new Answer(null, Message.of(silence()));
  }

  /**
   * Takes the answer that is due, and gives back what is owed.
   *
   * @return whether nothing is due any more
   */
  boolean settle(final Duration limit, final Deadline deadline) {
    final boolean isPatient = limit.compareTo(waited) > 0;
    if (unanswered != null && !receivesLate(isPatient ? deadline : Deadline.in(Duration.ZERO))) {
      waited = isPatient ? limit : waited;
      return false;
    }
    for (Long loan = owed.poll(); loan != null; loan = owed.poll()) {
      send(new Request(Frame.Type.RETURN, loan), limit, deadline);
      if (unanswered != null) {
        return false; // But it reads the request when it goes on.
      }
    }
    return true;
  }

  private Answer send(final Request request, final Duration limit, final Deadline deadline) {
    requests++;
    channel.send(seals.seal(request.frame(), requests), deadline);
    unanswered = request;
    final Frame answer = receiveOrNull(deadline);
    if (answer == null) {
      waited = limit;
      return new Answer(null, Message.of(silence()));
    }
    unanswered = null;
    return answer(request, answer);
  }

  /** The next frame; absent if the peer says nothing until the deadline. */
  private @Nullable Frame receiveOrNull(final Deadline deadline) {
    try {
      return channel.receive(deadline);
    } catch (final ExchangeException e) {
      if (e.reason() == Reason.TIMEOUT) {
        return null;
      }
      throw e;
    }
  }

  /** Takes the answer whose asker has given up, if it comes in time. */
  private boolean receivesLate(final Deadline deadline) {
    final Request late = Objects.requireNonNull(unanswered, "no request is unanswered");
    final Frame frame = receiveOrNull(deadline);
    if (frame == null) {
      return false;
    }
    unanswered = null;
    waited = Duration.ZERO;
    final Loan unwanted = answer(late, frame).segment();
    if (unwanted != null) {
      if (late.type() == Frame.Type.BORROW) {
        owed.add(unwanted.segmentId());
      }
      unwanted.handle().close();
    }
    return true;
  }

  private String silence() {
    return "executor " + peerName + " has not answered the request for " + unanswered;
  }

  private Answer answer(final Request request, final Frame sealed) {
    int fd = channel.takeDescriptor();
    try {
      if (!ANSWERS.contains(sealed.type())) {
        throw unfit(request, sealed);
      }
      final Frame answer = seals.open(sealed, requests);
      if (answer.type() == Frame.Type.GONE && answer.asId() == request.refusedId() && fd < 0) {
        return new Answer(null, null);
      }
      if (answer.type() == Frame.Type.WITHHELD && answer.asId() == request.refusedId() && fd < 0) {
        return new Answer(
            null,
            Message.of("a peer could not export a segment")
                .at(place(request))
                .remedy("see the log of that executor"));
      }
      if (answer.type() == Frame.Type.SEGMENT) {
        final Frame.SegmentInfo segment = answer.asSegment();
        final boolean byFd = segment.kind() == SegmentHandle.Kind.POSIX_FD;
        if (request.fits(segment) && byFd && fd >= 0) {
          checkSent(segment, Descriptor.status(fd));
          final SegmentHandle handle = new FdHandle(fd, segment.bytes());
          fd = -1;
          return new Answer(new Loan(segment.id(), handle), null);
        }
        if (request.fits(segment) && byFd && fd == Sockets.LOST_DESCRIPTOR) {
          if (request.type() == Frame.Type.BORROW) {
            owed.add(segment.id());
          }
          return new Answer(
              null,
              Message.of("the descriptor of a segment was lost")
                  .at(place(request))
                  .because("this process has reached its limit of open files")
                  .remedy("raise 'ulimit -n'"));
        }
        if (request.fits(segment) && request.type() == Frame.Type.FETCH && !byFd && fd < 0) {
          final SegmentHandle handle =
              new OpaqueHandle(segment.kind(), segment.bytes(), segment.opaque());
          return new Answer(new Loan(segment.id(), handle), null);
        }
      }
      throw unfit(request, answer);
    } finally {
      if (fd >= 0) {
        Descriptor.close(fd);
      }
    }
  }

  private String place(final Request request) {
    return request + " of executor " + peerName;
  }

  private ExchangeException unfit(final Request request, final Frame answer) {
    return new ExchangeException(
        Reason.PROTOCOL,
        "peer " + peerName + " answered " + request.type() + " by " + answer.type());
  }

  /** The owner says, under its seal, which file it sent. */
  private void checkSent(final Frame.SegmentInfo segment, final FileStatus received) {
    if (received.device() != segment.device() || received.inode() != segment.inode()) {
      throw new ExchangeException(
          Reason.AUTHENTICATION,
          "the descriptor of segment "
              + segment.id()
              + " is not the one that peer "
              + peerName
              + " sent");
    }
  }

  /**
   * A request that a peer answers.
   *
   * @param subject the id of a segment, or the size of one
   */
  record Request(Frame.Type type, long subject) {

    /** The id that an answer without a segment names. */
    long refusedId() {
      return type == Frame.Type.BORROW ? NOT_LENT : subject;
    }

    /** Whether a segment fits. */
    boolean fits(final Frame.SegmentInfo segment) {
      return switch (type) {
        case FETCH, KEEP -> segment.id() == subject;
        case BORROW -> segment.id() != NOT_LENT && segment.bytes() == subject;
        default -> false;
      };
    }

    Frame frame() {
      return Frame.ofId(type, subject);
    }

    @Override
    public String toString() {
      return switch (type) {
        case BORROW -> "a loan of " + subject + " bytes";
        case RETURN -> "the return of segment " + subject;
        default -> "segment " + subject;
      };
    }
  }

  /**
   * An answer that the protocol allows.
   *
   * @param segment absent if it is gone, or was not handed over
   * @param why it was not handed over, if that is the case
   */
  record Answer(@Nullable Loan segment, @Nullable Message why) {
    @Nullable Loan segmentOrThrow() {
      if (why != null) {
        throw new ExchangeException(Reason.UNAVAILABLE, why);
      }
      return segment;
    }
  }
}
