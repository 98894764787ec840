package io.zerohop.spark.report;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.spark.report.Figure.Figures;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * An executor's counts since its last report, and its memory now. Travels to the driver as JSON,
 * and from there into Spark's event log; a reader of another release ignores what it does not know
 * and takes what is missing for nothing. Immutable.
 *
 * @param node names the machine that it runs on, the same for all executors there; empty if unknown
 * @param timeMillis when, in milliseconds since 1970, by the executor's clock
 * @param flows what its readers got from each owner
 * @param memory its pools and files now; absent if this report says nothing of them
 * @param contacts executors that it got to know
 * @param advice what the doctor would say of this process
 */
public record ShuffleReport(
    String executorId,
    String node,
    long timeMillis,
    List<Flow> flows,
    List<ShuffleUse> shuffles,
    @Nullable Memory memory,
    List<Contact> contacts,
    List<Advice> advice) {

  /** Takes lists that are missing for empty ones, and leaves out elements that are null. */
  public ShuffleReport {
    node = node == null ? "" : node;
    flows = known(flows);
    shuffles = known(shuffles);
    contacts = known(contacts);
    advice = known(advice);
  }

  /**
   * Returns the report of a line of an event log; null if the line has none.
   *
   * @throws IllegalArgumentException if a value has another type than {@link ReportJson} writes
   */
  public static @Nullable ShuffleReport read(final @Nullable JsonNode report) {
    return ReportJson.read(report, ShuffleReport.class);
  }

  private static <T> List<T> known(final List<T> all) {
    return all == null ? List.of() : all.stream().filter(Objects::nonNull).toList();
  }

  private static <T> Map<String, T> known(final Map<String, T> all) {
    return all == null
        ? Map.of()
        : all.entrySet().stream()
            .filter(entry -> entry.getKey() != null && entry.getValue() != null)
            .collect(Collectors.toUnmodifiableMap(Map.Entry::getKey, Map.Entry::getValue));
  }

  /**
   * Bytes from one owner over one link.
   *
   * @param link the link's label; of a release that does not tell links apart the path's
   * @param busyMillis time during which such blocks were handed out, in slots of {@link
   *     ReportCounters#SLOT_MILLIS}
   * @param fullBytes bytes of those slots that lie between two others, so that the link was in use
   *     from their begin to their end
   * @param fullMillis how long these slots are
   */
  public record Flow(
      String owner,
      String path,
      String link,
      long blocks,
      long bytes,
      long busyMillis,
      long fullBytes,
      long fullMillis) {

    /** Takes a link that is missing for the path. */
    public Flow {
      link = link == null ? path : link;
    }
  }

  /** Blocks and their bytes. */
  public record Moved(long blocks, long bytes) {
    static final Moved NONE = new Moved(0, 0);

    Moved plus(final Moved more) {
      return new Moved(blocks + more.blocks, bytes + more.bytes);
    }
  }

  /**
   * Use of one shuffle by tasks.
   *
   * @param moved what was read, by the path's label
   * @param waitNanos time in nanoseconds that readers waited for blocks
   * @param fallbacks blocks that had to be staged, by the reason
   * @param causes what else is known of a reason; one that is missing is of a release that does not
   *     say, where the code ends the reason, and stays there
   */
  public record ShuffleUse(
      int shuffleId,
      List<Integer> writers,
      List<Integer> readers,
      Map<String, Moved> moved,
      long waitNanos,
      Map<String, Long> fallbacks,
      Map<String, Cause> causes) {

    /** Takes what is missing for empty, and leaves out elements that are null. */
    public ShuffleUse {
      writers = known(writers);
      readers = known(readers);
      moved = known(moved);
      fallbacks = known(fallbacks);
      causes = known(causes);
    }
  }

  /**
   * A reason for staged blocks, as fields of its message.
   *
   * @param code by which docs/runbook.md explains it, such as {@code ZH-6033}; empty if there is
   *     none
   * @param remedy the key to set or the command to run; empty if only the runbook says what to do
   * @param bytes about how many bytes the blocks had, as map statuses say
   */
  public record Cause(String code, String remedy, long bytes) {
    /** Returns the cause for reasons beyond a limit: only their bytes are known. */
    public static Cause ofOthers(final long bytes) {
      return new Cause("", "", bytes);
    }

    /** Takes what is missing for empty. */
    public Cause {
      code = code == null ? "" : code;
      remedy = remedy == null ? "" : remedy;
    }

    public Cause withBytes(final long all) {
      return new Cause(code, remedy, all);
    }
  }

  /**
   * An executor's figures now, in JSON each by its own name.
   *
   * @param keeper what the keeper of the node says; absent without keepers, and of a release that
   *     does not say
   */
  public record Memory(Figures figures, @Nullable Keeper keeper) {
    private static final String KEEPER = "keeper";

    @JsonCreator(mode = JsonCreator.Mode.DELEGATING)
    static Memory read(final JsonNode fields) {
      return new Memory(Figures.read(fields), ReportJson.read(fields.get(KEEPER), Keeper.class));
    }

    @JsonValue
    Map<String, @Nullable Object> fields() {
      final Map<String, @Nullable Object> fields = figures.fields();
      fields.put(KEEPER, keeper);
      return fields;
    }
  }

  /**
   * The keeper of a node, as it says to its executors; outputs are map outputs of executors that
   * have ended. Counts are since its start.
   *
   * @param started when, in milliseconds since 1970; 0 if none is connected, and then nothing else
   *     is known
   * @param release of its jar; empty if it is not known
   * @param limit maximum of bytes that it holds
   * @param held bytes that it holds, of executors that live and of those that have ended
   * @param left the part of them of those that have ended
   * @param outputs that it has
   * @param adopted outputs that it took over
   * @param dropped of these, those that it dropped
   * @param removed of these, those that it removed because memory was short
   * @param refused segments that it did not take because of its limit
   * @param shared bytes that it gave executors of its node to map
   * @param sent bytes that it sent to executors that asked for them
   * @param files bytes that it has in files
   * @param filesLimit maximum of them; 0 if nothing goes to files
   */
  public record Keeper(
      long started,
      String release,
      long limit,
      long held,
      long left,
      long outputs,
      long adopted,
      long dropped,
      long removed,
      long refused,
      long shared,
      long sent,
      long files,
      long filesLimit) {

    /** Takes a release that is missing for one that is not known. */
    public Keeper {
      release = release == null ? "" : release;
    }

    /** Returns what a keeper says, as it travels. */
    public static Keeper of(final KeeperStats stats) {
      return new Keeper(
          stats.startedMillis(),
          stats.release(),
          Math.min(ReportBounds.MAX_COUNT, stats.limitBytes()),
          stats.heldBytes(),
          stats.leftBytes(),
          stats.leftOutputs(),
          stats.adoptedOutputs(),
          stats.droppedOutputs(),
          stats.removedOutputs(),
          stats.refusedSegments(),
          stats.sharedBytes(),
          stats.sentBytes(),
          stats.fileBytes(),
          Math.min(ReportBounds.MAX_COUNT, stats.fileLimitBytes()));
    }

    /** Whether the executor is connected to it. */
    public boolean connected() {
      return started > 0;
    }
  }

  /**
   * A connection to an executor.
   *
   * @param owner the executor whose memory is read from now on
   * @param how the way, in words
   * @param link the label of the link to its blocks; absent of a release that does not say
   * @param expected bytes a second that the link has at least; 0 if that is not known
   */
  public record Contact(String owner, String how, @Nullable String link, long expected) {}

  /** Records as JSON, by the Jackson that Spark has. Thread safe. */
  public static final class ReportJson {
    private static final ObjectMapper MAPPER =
        new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);

    private ReportJson() {}

    public static String write(final Object value) {
      try {
        return MAPPER.writeValueAsString(value);
      } catch (final JsonProcessingException e) {
        throw new IllegalArgumentException(value.getClass() + " cannot be written as JSON", e);
      }
    }

    /** Returns a part of a text as a record; null if it is absent. */
    static <T> @Nullable T read(final @Nullable JsonNode part, final Class<T> type) {
      return part == null ? null : MAPPER.convertValue(part, type);
    }

    /**
     * The record of a text.
     *
     * @throws IllegalArgumentException if the text is not one of that type
     */
    public static <T> T read(final String text, final Class<T> type) {
      final T value;
      try {
        value = MAPPER.readValue(text, type);
      } catch (final JsonProcessingException e) {
        throw new IllegalArgumentException("not a " + type.getSimpleName() + " as JSON", e);
      }
      if (value == null) {
        throw new IllegalArgumentException("no " + type.getSimpleName() + ", but null");
      }
      return value;
    }
  }
}
