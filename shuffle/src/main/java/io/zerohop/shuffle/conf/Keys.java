package io.zerohop.shuffle.conf;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The keys that {@link Config} declares: their texts, and what these stand for. Sizes and durations
 * are written as Spark takes them, without needing Spark. Thread safe.
 */
public final class Keys {
  /** What all keys begin with. */
  public static final String PREFIX = "spark.zerohop.";

  private static final String INTERNAL = "internal.";
  private static final String AUTO = "auto";
  private static final Pattern QUANTITY = Pattern.compile("(-?[0-9]+)([a-z]*)");
  private static final String SIZES = "kmgtp";
  private static final Map<String, Duration> DURATIONS =
      Map.of(
          "us", Duration.ofNanos(1_000),
          "ms", Duration.ofMillis(1),
          "s", Duration.ofSeconds(1),
          "m", Duration.ofMinutes(1),
          "min", Duration.ofMinutes(1),
          "h", Duration.ofHours(1),
          "d", Duration.ofDays(1));

  private static final List<RecordComponent> COMPONENTS = components(Config.class).toList();

  private Keys() {}

  /**
   * A row of the page.
   *
   * @param name the full name
   * @param type of its values, in words
   * @param range of its values, in words; empty if there are no bounds
   */
  public record Row(
      String name, String type, String defaultText, String range, String since, String doc) {}

  /** Returns the rows of the page, in their order. Internal keys have none. */
  public static List<Row> rows() {
    return COMPONENTS.stream()
        .filter(component -> !key(component).name().startsWith(INTERNAL))
        .map(
            component -> {
              final Config.Key key = key(component);
              return new Row(
                  PREFIX + key.name(),
                  type(component),
                  key.value(),
                  range(key),
                  key.since(),
                  key.doc() + former(key));
            })
        .toList();
  }

  private static String former(final Config.Key key) {
    return key.formerly().isEmpty()
        ? ""
        : " Its former name, `" + PREFIX + key.formerly() + "`, still works.";
  }

  /** Returns the names that keys had before, each with the one it has now. */
  public static Map<String, String> renamed() {
    return COMPONENTS.stream()
        .map(Keys::key)
        .filter(key -> !key.formerly().isEmpty())
        .collect(
            Collectors.toMap(
                key -> PREFIX + key.formerly(),
                key -> PREFIX + key.name(),
                (a, b) -> a,
                TreeMap::new));
  }

  /**
   * Returns whether a key of this full name is declared, or was under this name, or is internal.
   */
  public static boolean isKnown(final String name) {
    return name.startsWith(PREFIX + INTERNAL)
        || COMPONENTS.stream()
            .map(Keys::key)
            .anyMatch(
                key -> name.equals(PREFIX + key.name()) || name.equals(PREFIX + key.formerly()));
  }

  static Config read(final UnaryOperator<@Nullable String> texts) {
    return (Config) build(Config.class, component -> value(component, texts));
  }

  static Config with(final Config config, final String name, final Object value) {
    final Map<String, Object> values = new HashMap<>();
    collect(config, values);
    if (!values.containsKey(name)) {
      throw new IllegalArgumentException("there is no key " + PREFIX + name);
    }
    values.put(name, value);
    return (Config)
        build(
            Config.class,
            component -> widened(values.get(key(component).name()), component.getType()));
  }

  /** Reflection unboxes and widens, but makes no int of a long and no double of a literal 1. */
  private static @Nullable Object widened(final @Nullable Object value, final Class<?> type) {
    if (!(value instanceof Number number)) {
      return value;
    }
    return type == long.class
        ? (Object) number.longValue()
        : type == double.class
            ? (Object) number.doubleValue()
            : Math.toIntExact(number.longValue());
  }

  private static Config.Key key(final RecordComponent component) {
    return component.getAnnotation(Config.Key.class);
  }

  private static Stream<RecordComponent> components(final Class<?> type) {
    return Arrays.stream(type.getRecordComponents())
        .flatMap(
            component ->
                key(component) == null ? components(component.getType()) : Stream.of(component));
  }

  private static Object build(final Class<?> type, final Function<RecordComponent, Object> values) {
    final RecordComponent[] components = type.getRecordComponents();
    final Object[] arguments =
        Arrays.stream(components)
            .map(
                component ->
                    key(component) == null
                        ? build(component.getType(), values)
                        : values.apply(component))
            .toArray();
    try {
      return type.getDeclaredConstructor(
              Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new))
          .newInstance(arguments);
    } catch (final ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void collect(final Object owner, final Map<String, Object> values) {
    for (final RecordComponent component : owner.getClass().getRecordComponents()) {
      try {
        final Object value = component.getAccessor().invoke(owner);
        if (key(component) == null) {
          collect(value, values);
        } else {
          values.put(key(component).name(), value);
        }
      } catch (final ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static @Nullable Object value(
      final RecordComponent component, final UnaryOperator<@Nullable String> texts) {
    final Config.Key key = key(component);
    String name = PREFIX + key.name();
    String text = texts.apply(name);
    if (text == null && !key.formerly().isEmpty()) {
      final String formerly = PREFIX + key.formerly();
      text = texts.apply(formerly);
      name = text == null ? name : formerly;
    }
    text = (text == null ? key.value() : text).trim();
    try {
      return parse(component, text);
    } catch (final RuntimeException e) {
      throw new IllegalArgumentException(
          name
              + "="
              + text
              + " is not valid: expected "
              + type(component)
              + ", for example "
              + key.value()
              + "; "
              + e.getMessage(),
          e);
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static @Nullable Object parse(final RecordComponent component, final String text) {
    final Class<?> type = component.getType();
    final Config.Key key = key(component);
    if (type == long.class) {
      return text.equals(AUTO) && key.value().equals(AUTO)
          ? (Object) Config.AUTO
          : within(key, text, Keys::size);
    } else if (type == int.class) {
      return within(key, text, Integer::valueOf);
    } else if (type == double.class) {
      return within(key, text, Double::valueOf);
    } else if (type == Duration.class) {
      return within(key, text, Keys::duration);
    } else if (type == boolean.class) {
      return truth(text);
    } else if (type == Path.class) {
      return text.isEmpty() || text.equals(AUTO) ? null : Path.of(text);
    } else if (type.isEnum()) {
      return constant((Class) type, text);
    } else if (type == Set.class) {
      final Set set = EnumSet.noneOf((Class) element(component));
      for (final String word : text.split(",")) {
        set.add(constant((Class) element(component), word.trim()));
      }
      return Collections.unmodifiableSet(set);
    }
    return text;
  }

  private static <T extends Comparable<T>> T within(
      final Config.Key key, final String text, final Function<String, T> parser) {
    final T value = parser.apply(text);
    if (!key.min().isEmpty() && value.compareTo(parser.apply(key.min())) < 0
        || !key.max().isEmpty() && value.compareTo(parser.apply(key.max())) > 0) {
      throw new IllegalArgumentException("must be " + range(key).replace("`", ""));
    }
    return value;
  }

  private static String range(final Config.Key key) {
    final String min = key.min().isEmpty() ? "" : "`" + key.min() + "`";
    final String max = key.max().isEmpty() ? "" : "`" + key.max() + "`";
    return max.isEmpty() ? (min.isEmpty() ? "" : "at least " + min) : "from " + min + " to " + max;
  }

  private static String type(final RecordComponent component) {
    final Class<?> type = component.getType();
    if (type.isEnum()) {
      final List<String> names = names(type);
      final int last = names.size() - 1;
      return String.join(", ", names.subList(0, last)) + " or " + names.get(last);
    } else if (type == Set.class) {
      return "comma-separated list of " + String.join(", ", names(element(component)));
    }
    return Map.<Class<?>, String>of(
            long.class, "size",
            double.class, "fraction",
            String.class, "text")
        .getOrDefault(type, type.getSimpleName().toLowerCase(Locale.ROOT));
  }

  private static Class<?> element(final RecordComponent set) {
    return (Class<?>) ((ParameterizedType) set.getGenericType()).getActualTypeArguments()[0];
  }

  private static List<String> names(final Class<?> type) {
    return Arrays.stream(type.getEnumConstants())
        .map(constant -> ((Enum<?>) constant).name().toLowerCase(Locale.ROOT))
        .toList();
  }

  private static <E extends Enum<E>> E constant(final Class<E> type, final String text) {
    return Enum.valueOf(type, text.toUpperCase(Locale.ROOT));
  }

  /**
   * Returns whether a key that is not one of ours is true.
   *
   * @param text absent if it is not set
   * @throws IllegalArgumentException if the text is neither true nor false
   */
  public static boolean isTrue(final String name, final @Nullable String text) {
    try {
      return text != null && truth(text.trim());
    } catch (final IllegalArgumentException e) {
      throw new IllegalArgumentException(name + "=" + text + " is not valid: " + e.getMessage(), e);
    }
  }

  private static boolean truth(final String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new IllegalArgumentException("neither true nor false");
    };
  }

  /**
   * Returns the bytes of a number, or of a unit with or without a {@code b} behind it.
   *
   * @throws IllegalArgumentException if it is neither
   */
  public static Long size(final String text) {
    final Matcher matcher = quantity(text);
    final String suffix = matcher.group(2);
    final String unit =
        suffix.length() == 2 && suffix.endsWith("b") ? suffix.substring(0, 1) : suffix;
    if (unit.isEmpty() || unit.equals("b")) {
      return Long.valueOf(matcher.group(1));
    }
    if (unit.length() != 1 || SIZES.indexOf(unit.charAt(0)) < 0) {
      throw new IllegalArgumentException("there is no unit of sizes " + suffix);
    }
    return Math.multiplyExact(
        Long.parseLong(matcher.group(1)), 1L << 10 * (1 + SIZES.indexOf(unit.charAt(0))));
  }

  /** A number of milliseconds, or of a unit. */
  private static Duration duration(final String text) {
    final Matcher matcher = quantity(text);
    final String suffix = matcher.group(2);
    final Duration unit = DURATIONS.get(suffix.isEmpty() ? "ms" : suffix);
    if (unit == null) {
      throw new IllegalArgumentException("there is no unit of time " + suffix);
    }
    return unit.multipliedBy(Long.parseLong(matcher.group(1)));
  }

  private static Matcher quantity(final String text) {
    final Matcher matcher = QUANTITY.matcher(text.toLowerCase(Locale.ROOT));
    if (!matcher.matches()) {
      throw new IllegalArgumentException("must be a whole number with a unit, or without");
    }
    return matcher;
  }
}
