package io.zerohop.spark.sent;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.PortCarrier.KnownNeighbours.TooSoonException;
import io.zerohop.spark.sent.Uploads.ArrivingWord;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The links by which readers send requests to this executor, and one connection for each reader's
 * responses. A connection that breaks is made anew; the links of a reader end when it cannot be
 * reached any more. Thread safe; owns the connections.
 */
final class ServedLinks implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ServedLinks.class);

  static final int MAX_QUESTION_BYTES = 16 << 20;

  /** Of questions that are arriving, or wait to be read, altogether. */
  private static final long MAX_WAITING_BYTES = 64 << 20;

  /** Of one reader: it needs one, and has another while it makes it anew. */
  private static final int MAX_OF_ONE = 4;

  /**
   * Of a word whose connection breaks: a reader waits for minutes for one that is lost. What breaks
   * all connections may break the one that is made meanwhile, too (1 of 800 resets did).
   */
  private static final int TRIES = 3;

  private static final CompletableFuture<?> NOTHING_LEFT = CompletableFuture.completedFuture(null);

  /** Ended links whose numbers are remembered: more than all readers end while a question waits. */
  private static final int MAX_ENDED = 1024;

  /** A way back that was made so shortly before is not doubted: nobody can have it made at will. */
  private static final Duration FRESH = Duration.ofSeconds(1);

  private final ControlService service;
  private final Function<String, Connection> connector;
  private final Executor executor;
  private final Executor reading;
  private final Clock clock;
  private final AtomicLong nextId = new AtomicLong();
  private final AtomicLong waitingBytes = new AtomicLong();
  private final PostponedQuestions postponed;

  /** Guards what is below. */
  private final Object lock = new Object();

  private final Map<String, Reader> readers = new HashMap<>();

  /** The attempts to connect that are under way. */
  private final Map<String, CompletableFuture<Connection>> attempts = new HashMap<>();

  /**
   * Links that their readers have ended, the last ones. Words of a link are read by several
   * threads, so that its end may overtake a question: a lease that this took would stay until it
   * expires. Numbers of links are random and never used again.
   */
  private final Set<Long> ended =
      Collections.newSetFromMap(
          new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(final Map.Entry<Long, Boolean> eldest) {
              return size() > MAX_ENDED;
            }
          });

  /** Readers that left, or could not be reached: nobody connects to them before they ask again. */
  private final Set<String> gone = new HashSet<>();

  /** One executor that asks: its links by their numbers, the oldest first, and the way back. */
  private static final class Reader {
    private final String executorId;
    private final Map<Long, Long> links = new LinkedHashMap<>();
    private Connection back;

    /** Whether it has asked something since that connection was made. */
    private boolean hasAsked;

    /** Until when it is not doubted. */
    private long freshUntil;

    Reader(final String executorId, final Connection back) {
      this.executorId = executorId;
      this.back = back;
    }

    /**
     * Whether it introduces itself by another link than those that it has, if any. Then it has
     * given one up, most likely because nothing came from here, and nobody knows whether the way
     * back still leads to it: a firewall may have forgotten that connection, and nothing says so
     * for minutes.
     */
    boolean comesAnew(final long link, final int question) {
      return question == 0 && !links.containsKey(link);
    }
  }

  /**
   * @param service stays the caller's
   * @param connector connects to an executor of this application, within a limit; throws a {@link
   *     TooSoonException} if it cannot tell yet whether that is one
   * @param executor connects, which takes long
   * @param reading reads what has come, and does not stand behind those that wait for GPUs: a
   *     reader takes silence for death
   */
  ServedLinks(
      final ControlService service,
      final Function<String, Connection> connector,
      final Executor executor,
      final Executor reading,
      final Clock clock) {
    this.service = service;
    this.connector = connector;
    this.executor = executor;
    this.reading = reading;
    this.clock = clock;
    this.postponed = new PostponedQuestions(clock);
  }

  /** Returns what takes a question or a farewell that comes; null if there is no room for it. */
  @Nullable ArrivingWord arriving(final UploadId id) {
    final int bytes = id.length();
    if (bytes > MAX_QUESTION_BYTES) {
      return null;
    }
    if (waitingBytes.addAndGet(bytes) > MAX_WAITING_BYTES) {
      waitingBytes.addAndGet(-bytes);
      return null;
    }
    return new ArrivingWord(
        bytes, reading, words -> read(id, words), () -> waitingBytes.addAndGet(-bytes));
  }

  private void read(final UploadId id, final @Nullable ByteBuffer words) {
    final String sender = words == null ? null : ArrivingWord.sender(words);
    if (words == null || sender == null) {
      LOG.debug("a request is invalid or was damaged");
      return; // Who asked gives up by itself.
    }
    if (id.type() == UploadId.BYE) {
      ended(sender, id.number());
      return;
    }
    if (isReached(sender)
        && outdated(sender, id.number(), id.place()) == null
        && handOn(sender, id.number(), id.place(), words)) {
      return;
    }
    waitingBytes.addAndGet(id.length()); // The sender has to be connected to first.
    if (!later(
        () ->
            asked(sender, id.number(), id.place(), words)
                .whenComplete((done, failure) -> waitingBytes.addAndGet(-id.length())))) {
      waitingBytes.addAndGet(-id.length());
    }
  }

  /**
   * A question has come. Connects to the reader if nobody does, which takes a limited time.
   *
   * @param link the reader's number for it
   * @return completes when the question is not needed any more
   */
  CompletableFuture<?> asked(
      final String executorId, final long link, final int question, final ByteBuffer words) {
    return asked(new Question(executorId, link, question, words, true, TRIES));
  }

  /**
   * A question that waits for a connection to its reader.
   *
   * @param link the reader's number for it
   * @param number of the question
   * @param first whether it may be postponed: whom the driver does not list by then is nobody
   * @param tries to connect that are left: each connection may break at once
   */
  private record Question(
      String executorId, long link, int number, ByteBuffer words, boolean first, int tries) {

    Question again(final boolean isFirst, final int left) {
      return new Question(executorId, link, number, words, isFirst, left);
    }
  }

  private CompletableFuture<?> asked(final Question question) {
    final String executorId = question.executorId();
    synchronized (lock) {
      if (ended.contains(question.link())) {
        return NOTHING_LEFT;
      }
    }
    final Connection old = outdated(executorId, question.link(), question.number());
    if (old != null) {
      old.close(); // Answers that it has not carried yet are said again.
    }
    return back(executorId, true)
        .handle(
            (back, failure) -> {
              if (failure != null) {
                notReached(question, failure);
                return NOTHING_LEFT;
              }
              return handOn(executorId, question.link(), question.number(), question.words())
                  ? NOTHING_LEFT
                  : askedAgain(question.again(question.first(), question.tries() - 1));
            })
        .thenCompose(rest -> rest);
  }

  /** By another thread: others wait behind the connection that broke, and to connect takes long. */
  private CompletableFuture<?> askedAgain(final Question question) {
    final CompletableFuture<Object> done = new CompletableFuture<>();
    if (question.tries() == 0
        || !later(() -> asked(question).whenComplete((rest, failure) -> done.complete(null)))) {
      LOG.debug("each connection to executor {}, which asks, breaks", question.executorId());
      return NOTHING_LEFT;
    }
    return done;
  }

  private void notReached(final Question question, final Throwable failure) {
    LOG.debug("executor {} asks, and cannot be answered", question.executorId(), failure);
    final Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
    if (question.first() && cause instanceof TooSoonException soon) {
      postponed.add(
          soon.until(), question.words().capacity(), () -> asked(question.again(false, TRIES)));
    } // Otherwise it gives up by itself.
  }

  /** Tries postponed questions again. To be called often. Does not wait. */
  void maintain() {
    postponed.due().forEach(this::later);
  }

  /** Returns the way back that a question shows to be doubtful; null if there is none. */
  private @Nullable Connection outdated(
      final String executorId, final long link, final int question) {
    synchronized (lock) {
      final Reader reader = readers.get(executorId);
      if (reader == null || !reader.comesAnew(link, question) || !clock.isOver(reader.freshUntil)) {
        return null;
      }
      reader.hasAsked = true; // So its other links outlive that connection.
      return reader.back;
    }
  }

  /**
   * Gives a question to the service. Does not wait.
   *
   * @return false if the reader has to be connected to before
   */
  private boolean handOn(
      final String executorId, final long link, final int question, final ByteBuffer words) {
    final List<Long> over = new ArrayList<>();
    final long id;
    final boolean anew;
    synchronized (lock) {
      if (ended.contains(link)) {
        return true; // Nobody waits for the answer.
      }
      final Reader reader = readers.get(executorId);
      if (reader == null) {
        return false;
      }
      reader.hasAsked = true;
      anew = question > 0 && !reader.links.containsKey(link);
      id = reader.links.computeIfAbsent(link, first -> nextId.incrementAndGet());
      final Iterator<Long> oldest = reader.links.values().iterator();
      for (int left = reader.links.size(); left > MAX_OF_ONE; left--) {
        over.add(oldest.next());
        oldest.remove();
      }
    }
    over.forEach(service::disconnected);
    try {
      if (anew) { // The reader could not be reached for a while, and was forgotten.
        final byte[] name = executorId.getBytes(StandardCharsets.UTF_8);
        service.asked(id, Questions.hello(name, false), ignored -> {});
      }
      service.asked(id, words, answer -> answer(executorId, link, question, answer));
    } catch (final RuntimeException e) {
      answer(executorId, link, question, Wire.refusal(e));
    }
    synchronized (lock) {
      final Reader reader = readers.get(executorId);
      if (reader != null && Long.valueOf(id).equals(reader.links.get(link))) {
        return true;
      }
    }
    service.disconnected(id); // It ended meanwhile, maybe before the service knew it.
    return true;
  }

  private boolean isReached(final String executorId) {
    synchronized (lock) {
      final Reader known = readers.get(executorId);
      return known != null && known.back.alive();
    }
  }

  private void answer(
      final String executorId, final long link, final int question, final ByteBuffer answer) {
    final ByteBuffer body = ArrivingWord.body(answer);
    final UploadId id = UploadId.word(UploadId.ANSWER, link, question, body.remaining());
    if (isReached(executorId)) {
      say(executorId, id, body, TRIES);
    } else {
      later(() -> say(executorId, id, body, TRIES)); // To connect takes long.
    }
  }

  /** Tells a reader that messages of a transfer were lost. Does not wait. */
  void lost(final String executorId, final long transfer) {
    final ByteBuffer body = ArrivingWord.body(ByteBuffer.allocate(0));
    final UploadId id =
        UploadId.word(
            UploadId.LOST, transfer & Long.MAX_VALUE, (int) (transfer >>> 63), body.remaining());
    later(() -> say(executorId, id, body, TRIES));
  }

  /**
   * Uploads a word to a reader, and again if the connection breaks. May connect.
   *
   * @param tries that are left
   */
  private void say(
      final String executorId, final UploadId id, final ByteBuffer body, final int tries) {
    back(executorId, false)
        .thenAccept(
            back ->
                back.upload(
                    id,
                    body,
                    (reply, failure) -> {
                      if (failure != null && tries > 1) {
                        later(() -> say(executorId, id, body, tries - 1));
                      }
                    }))
        .whenComplete(
            (said, failure) -> {
              if (failure != null) {
                LOG.debug("cannot notify executor {}", executorId, failure);
              }
            });
  }

  /** Says whether it will be done: not while this executor shuts down. */
  private boolean later(final Runnable chore) {
    try {
      executor.execute(chore);
      return true;
    } catch (final RejectedExecutionException e) {
      LOG.debug("this executor is shutting down", e);
      return false;
    }
  }

  /**
   * The way to a reader. If there is none, and nobody connects to it, this thread does, which may
   * take long; nobody else waits for that with a thread.
   *
   * @param asks whether the reader has just asked something
   * @return fails if the reader has left, or cannot be reached
   */
  private CompletableFuture<Connection> back(final String executorId, final boolean asks) {
    final CompletableFuture<Connection> attempt;
    final boolean ours;
    synchronized (lock) {
      final Reader known = readers.get(executorId);
      if (known != null && known.back.alive()) {
        return CompletableFuture.completedFuture(known.back);
      }
      if (!asks && gone.contains(executorId)) {
        return CompletableFuture.failedFuture(
            new CarrierException(
                "executor " + executorId + " has left, or could not be reached", null));
      }
      ours = !attempts.containsKey(executorId);
      attempt = attempts.computeIfAbsent(executorId, first -> new CompletableFuture<>());
    }
    if (ours) {
      connect(executorId, asks, attempt);
    }
    return attempt;
  }

  private void connect(
      final String executorId, final boolean asks, final CompletableFuture<Connection> attempt) {
    final Connection made;
    try {
      made = connector.apply(executorId);
    } catch (final RuntimeException | Error e) {
      synchronized (lock) {
        attempts.remove(executorId);
        if (!asks) {
          gone.add(executorId);
        }
      }
      attempt.completeExceptionally(e);
      return;
    }
    synchronized (lock) {
      attempts.remove(executorId);
      gone.remove(executorId);
      final Reader reader = readers.computeIfAbsent(executorId, id -> new Reader(id, made));
      reader.back = made;
      reader.hasAsked = false;
      reader.freshUntil = clock.in(FRESH);
    }
    attempt.complete(made);
    made.onClosed(() -> lost(executorId, made));
  }

  /**
   * A reader that is still there gets its answers by another connection. One that has asked nothing
   * by the last one does not: somebody who closes each at once would have it made without end. Does
   * not wait.
   */
  private void lost(final String executorId, final Connection back) {
    final boolean anew;
    synchronized (lock) {
      final Reader reader = readers.get(executorId);
      anew = reader != null && reader.back == back && !reader.links.isEmpty() && reader.hasAsked;
    }
    if (!anew || !later(() -> connectAnew(executorId, back))) {
      gone(executorId, back);
    }
  }

  private void connectAnew(final String executorId, final Connection broken) {
    back(executorId, false)
        .whenComplete(
            (back, failure) -> {
              if (failure != null) {
                LOG.debug("executor {} has left, and reads no more", executorId, failure);
                gone(executorId, broken);
              }
            });
  }

  /** Nothing of a reader stays, unless it was reached by another connection meanwhile. */
  private void gone(final String executorId, final Connection back) {
    final List<Long> links;
    synchronized (lock) {
      final Reader reader = readers.get(executorId);
      if (reader == null || reader.back != back) {
        return;
      }
      readers.remove(executorId);
      links = List.copyOf(reader.links.values());
    }
    links.forEach(service::disconnected);
  }

  /** A reader says that its link has ended. */
  void ended(final String executorId, final long link) {
    final Long id;
    final Connection last;
    synchronized (lock) {
      ended.add(link);
      final Reader reader = readers.get(executorId);
      if (reader == null) {
        return;
      }
      id = reader.links.remove(link);
      last = reader.links.isEmpty() ? reader.back : null;
      if (last != null) {
        readers.remove(executorId); // A link that comes meanwhile gets another way back.
        gone.add(executorId); // What fails of its transfers now, need not be told to it.
      }
    }
    if (id != null) {
      service.disconnected(id);
    }
    if (last != null) {
      last.close();
    }
  }

  @Override
  public void close() {
    postponed.clear();
    final List<Reader> all;
    synchronized (lock) {
      all = List.copyOf(readers.values());
    }
    for (final Reader reader : all) {
      reader.back.close();
      gone(reader.executorId, reader.back);
    }
  }
}
