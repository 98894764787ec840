package io.zerohop.device;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.function.Function;

/**
 * Feeds damaged bytes to what reads bytes that another process wrote: it may refuse them in the way
 * that its callers expect, or take them, and nothing else. The same cases come each time; {@code
 * -Dzerohop.fuzz.cases} asks for more, {@code -Dzerohop.fuzz.seed} for others, and {@code
 * -Dzerohop.fuzz.out} names a file that gets a line of JSON for each parser.
 */
public final class Fuzz {
  private static final int USUAL_CASES = 20_000;

  /** So many kinds of what is right are damaged; to make them can take longer than to read them. */
  private static final int MOST_GOOD = 2_000;

  private static final int[] ODD = {
    0, 1, -1, 127, 128, 255, 256, 65_535, 65_536, 1 << 30, Integer.MAX_VALUE, Integer.MIN_VALUE
  };

  private final String name;
  private final long seed = Long.getLong("zerohop.fuzz.seed", 20_261_122L);
  private final Random random = new Random(seed);

  private Fuzz(final String name) {
    this.name = name;
  }

  /** Reads bytes. */
  @FunctionalInterface
  public interface Parser {
    /** Returns false, or throws what {@link #run} was told, if it refuses them. */
    boolean parse(byte[] bytes) throws Exception;
  }

  /**
   * Runs all cases of one parser.
   *
   * @param good makes bytes as they should be, which have to be taken
   * @param refusals what the parser may throw
   */
  public static void run(
      final String name,
      final Function<Random, byte[]> good,
      final Parser parser,
      final List<Class<? extends Exception>> refusals)
      throws IOException {
    new Fuzz(name).run(good, parser, refusals, cases(USUAL_CASES));
  }

  /** How many cases to run where it is usually so many. */
  public static int cases(final int usual) {
    return Integer.getInteger("zerohop.fuzz.cases", usual);
  }

  private void run(
      final Function<Random, byte[]> good,
      final Parser parser,
      final List<Class<? extends Exception>> refusals,
      final int cases)
      throws IOException {
    final byte[][] goods = new byte[MOST_GOOD][];
    int refused = 0;
    for (int i = 0; i < cases; i++) {
      final byte[] bytes = one(goods, good);
      if (i % 100 == 0 && !taken(parser, refusals, bytes, i)) {
        throw new AssertionError(at(i, bytes) + " is as it should be, and was refused");
      }
      refused += taken(parser, refusals, damaged(bytes), i) ? 0 : 1;
    }
    if (refused == 0) {
      throw new AssertionError(name + " takes everything");
    }
    report(name, cases, refused, seed);
  }

  private byte[] one(final byte[][] goods, final Function<Random, byte[]> good) {
    final int which = random.nextInt(goods.length);
    if (goods[which] == null) {
      goods[which] = good.apply(random);
    }
    return goods[which];
  }

  private boolean taken(
      final Parser parser,
      final List<Class<? extends Exception>> refusals,
      final byte[] bytes,
      final int number) {
    try {
      return parser.parse(bytes.clone());
    } catch (final Throwable e) {
      if (refusals.stream().noneMatch(known -> known.isInstance(e))) {
        throw new AssertionError(at(number, bytes) + " ends in " + e, e);
      }
      return false;
    }
  }

  private String at(final int number, final byte[] bytes) {
    return name + ", case " + number + " of seed " + seed + ": " + HexFormat.of().formatHex(bytes);
  }

  /** Some of the ways in which bytes go wrong, one after the other. */
  private byte[] damaged(final byte[] good) {
    byte[] bytes = good;
    for (int i = random.nextInt(3); i >= 0; i--) {
      bytes = damagedOnce(bytes);
    }
    return bytes;
  }

  private byte[] damagedOnce(final byte[] good) {
    if (good.length == 0) {
      return noise(random.nextInt(64));
    }
    final byte[] bad = good.clone();
    final int at = random.nextInt(bad.length);
    switch (random.nextInt(8)) {
      case 0 -> bad[at] ^= (byte) (1 << random.nextInt(8));
      case 1 -> bad[at] = (byte) random.nextInt();
      case 2 -> {
        return Arrays.copyOf(bad, at);
      }
      case 3 -> {
        return Arrays.copyOfRange(bad, at, bad.length);
      }
      case 4 -> {
        return Arrays.copyOf(bad, bad.length + 1 + random.nextInt(64));
      }
      case 5 -> odd(bad, at);
      case 6 -> {
        final int from = random.nextInt(bad.length);
        final int length = random.nextInt(bad.length - Math.max(at, from));
        System.arraycopy(good, from, bad, at, length);
      }
      default -> {
        return noise(1 + random.nextInt(2 * bad.length));
      }
    }
    return bad;
  }

  /** A number that lengths and counts go wrong by, of either byte order. */
  private void odd(final byte[] bytes, final int at) {
    if (at + Integer.BYTES <= bytes.length) {
      final int value = ODD[random.nextInt(ODD.length)];
      ByteBuffer.wrap(bytes).putInt(at, random.nextBoolean() ? value : Integer.reverseBytes(value));
    }
  }

  private byte[] noise(final int length) {
    final byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  /** Adds a parser to the results, if they are wanted. */
  public static void report(final String name, final int cases, final int refused, final long seed)
      throws IOException {
    final String file = System.getProperty("zerohop.fuzz.out");
    if (file != null) {
      Files.writeString(
          Path.of(file),
          String.format(
              "{\"parser\": \"%s\", \"cases\": %d, \"refused\": %d, \"seed\": %d}%n",
              name, cases, refused, seed),
          StandardOpenOption.CREATE,
          StandardOpenOption.APPEND);
    }
  }
}
