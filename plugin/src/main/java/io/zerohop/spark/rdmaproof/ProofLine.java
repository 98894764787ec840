package io.zerohop.spark.rdmaproof;

import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One line of a proof. Immutable.
 *
 * @param memory whose bytes were read; absent where that does not matter
 * @param owner name of the host that owned them; empty where that does not matter
 * @param bytes of each get; 0 where that does not matter
 * @param value what was counted or measured; NaN if nothing was
 * @param unit of the value
 * @param why why it failed or was skipped, and what would help; may say more where it passed
 */
record ProofLine(
    Check check,
    @Nullable MemoryKind memory,
    String owner,
    String what,
    long bytes,
    double value,
    String unit,
    Result result,
    String why) {

  private static final int MAX_CHARACTERS = 2000;

  /** Texts may come from others and end up on a terminal: they are plain and short. */
  ProofLine {
    what = text(what);
    why = text(why);
  }

  private static String text(final String text) {
    final String plain = ProofWords.plain(text);
    return plain.length() <= MAX_CHARACTERS ? plain : plain.substring(0, MAX_CHARACTERS) + "...";
  }

  /** The result. */
  enum Result {
    PASSED,
    FAILED,
    SKIPPED;

    static Result of(final boolean passed) {
      return passed ? PASSED : FAILED;
    }
  }

  /** The subject of a check. */
  enum Check {
    /** The hosts are two. */
    HOSTS,
    /** The hosts do not lose each other. Found only if they do. */
    CONNECTION,
    /** Both have a hardware adapter. */
    ADAPTER,
    /** Both have a GPU and a driver for it. */
    DRIVER,
    /** Adapters reach GPU memory, by nvidia-peermem or dma-buf. */
    GPUDIRECT,
    /** UCX starts as in executors. */
    UCX,
    /** A segment is registered. */
    REGISTER,
    /** Gets bring the right bytes and no others. */
    CONTENTS,
    /** Gets end while the owner is stopped. */
    ONE_SIDED,
    /** Gets of owners that are killed end. */
    KILLED,
    /** How long gets take, and how much they bring. */
    RATE,
    /** A job of Spark's. */
    JOB;

    String key() {
      return name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
    }

    /** Returns a line on both hosts. */
    ProofLine found(final String what, final Result result, final String why) {
      return found(null, "", what, result, why);
    }

    /** Returns a line without a measurement. */
    ProofLine found(
        final @Nullable MemoryKind memory,
        final String owner,
        final String what,
        final Result result,
        final String why) {
      return new ProofLine(this, memory, owner, what, 0, Double.NaN, "", result, why);
    }
  }

  /** Returns this line with what was counted or measured, of gets of so many bytes. */
  ProofLine measured(final long ofBytes, final double measured, final String in) {
    return new ProofLine(check, memory, owner, what, ofBytes, measured, in, result, why);
  }

  /**
   * Requests and responses: words in one line, separated by tabs. An answer begins with its kind.
   */
  static final class ProofWords {
    static final String OK = "ok";
    static final String FAILED = "failed";

    private static final String SEPARATOR = "\t";

    private ProofWords() {}

    /** One line; what would end it, or a word in it, becomes a space. */
    static String join(final List<String> words) {
      return String.join(SEPARATOR, words.stream().map(ProofWords::plain).toList());
    }

    /**
     * A text with spaces in place of what a terminal obeys or does not show: controls (C1 too),
     * signs that turn text around, and other line ends.
     */
    static String plain(final String text) {
      return text.replaceAll("[\\p{Cc}\\p{Cf}\\u2028\\u2029]", " ");
    }

    /** The words of a line, made plain regardless of the sender. */
    static List<String> split(final String line) {
      return Arrays.stream(line.split(SEPARATOR, -1)).map(ProofWords::plain).toList();
    }

    /** A good answer. */
    static List<String> ok(final Object... words) {
      final List<String> all = new ArrayList<>(List.of(OK));
      Arrays.stream(words).map(String::valueOf).forEach(all::add);
      return all;
    }

    /** Returns a response with an error. */
    static List<String> failed(final Throwable cause) {
      final String message = cause.getMessage();
      final boolean known = cause instanceof ProofException && message != null;
      return List.of(FAILED, known ? message : String.valueOf(cause));
    }

    /**
     * Returns the contents of a good response.
     *
     * @throws ProofException with what a bad one says
     */
    static List<String> said(final List<String> answer) {
      if (answer.get(0).equals(OK)) {
        return answer.subList(1, answer.size());
      }
      throw new ProofException(answer.size() > 1 ? answer.get(1) : "an answer says nothing");
    }
  }
}
