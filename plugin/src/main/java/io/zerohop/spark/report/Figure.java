package io.zerohop.spark.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.zerohop.spark.metrics.Metric;
import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * A metric of executors that the tab shows, too: by executor in a table, and added up over time. A
 * constant is all that a figure takes; what is done with it follows from its metric, which counts
 * bytes, and not those of a node's keeper. One that only rises keeps its value when its executor is
 * gone, and any other one becomes 0. One of executors with GPU memory is shown where there are such
 * executors. Bytes are shown as sizes.
 */
public enum Figure {
  DEVICE_USED(Metric.DEVICE_USED, "deviceUsed", "GPU memory", "Held in GPU memory"),
  DEVICE_LIMIT(Metric.DEVICE_LIMIT, "deviceLimit", "of", "Limit of the pool in GPU memory"),
  HOST_USED(Metric.HOST_USED, "hostUsed", "Host memory", "Held in shared host memory"),
  HOST_LIMIT(Metric.HOST_LIMIT, "hostLimit", "of", "Limit of the pool in host memory"),
  FILES(Metric.FILES_BYTES, "files", "Files", "Map outputs in files"),
  OVERFLOWED(
      Metric.DEVICE_OVERFLOW, "overflowed", "Overflowed to host", "Found no room in GPU memory"),
  SPILLED_TO_HOST(
      Metric.HOST_SPILLED, "spilledToHost", "Spilled to host", "Moved out of GPU memory"),
  SPILLED_TO_FILES(
      Metric.FILES_SPILLED, "spilledToFiles", "Spilled to files", "Moved out of host memory");

  private final Metric metric;
  private final String field;
  private final String title;
  private final String tip;

  /**
   * A figure.
   *
   * @param field its name in event logs, by which other releases read it: never to be changed
   * @param title of its column
   * @param tip what its column says at length
   */
  Figure(final Metric metric, final String field, final String title, final String tip) {
    if (!metric.unit().equals("bytes") || metric.owner() == Metric.Owner.KEEPER) {
      throw new IllegalArgumentException(metric + " cannot be limited or added up as bytes are");
    }
    this.metric = metric;
    this.field = field;
    this.title = title;
    this.tip = tip;
  }

  public Metric metric() {
    return metric;
  }

  public String title() {
    return title;
  }

  public String tip() {
    return tip;
  }

  /** All figures of an executor, or of several, at one moment. Immutable. */
  public record Figures(Map<Figure, Long> values) {
    public static final Figures NONE = of(any -> 0);

    public Figures {
      values = Collections.unmodifiableMap(new EnumMap<>(values));
    }

    public static Figures of(final ToLongFunction<Figure> value) {
      final Map<Figure, Long> values = new EnumMap<>(Figure.class);
      for (final Figure figure : Figure.values()) {
        values.put(figure, value.applyAsLong(figure));
      }
      return new Figures(values);
    }

    /** Reads what {@link #fields} writes; one that is missing is 0, what is no number negative. */
    public static Figures read(final JsonNode fields) {
      return of(
          figure -> {
            if (!fields.isObject()) {
              return -1;
            }
            final JsonNode value = fields.path(figure.field);
            return value.isNull() || value.isMissingNode()
                ? 0
                : value.canConvertToLong() ? value.longValue() : -1;
          });
    }

    /** Returns them by their names in event logs. */
    public Map<String, Object> fields() {
      final Map<String, Object> fields = new LinkedHashMap<>();
      values.forEach((figure, value) -> fields.put(figure.field, value));
      return fields;
    }

    public long get(final Figure figure) {
      return values.getOrDefault(figure, 0L);
    }

    /** Returns the sum of both. */
    public Figures plus(final Figures more) {
      return of(figure -> get(figure) + more.get(figure));
    }

    /** Returns what they are once their executor is gone. */
    public Figures atEnd() {
      return of(figure -> figure.metric.type() == Metric.Type.GAUGE ? 0 : get(figure));
    }
  }
}
