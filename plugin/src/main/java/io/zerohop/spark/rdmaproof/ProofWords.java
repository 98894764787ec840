package io.zerohop.spark.rdmaproof;

import io.zerohop.spark.rdmaproof.Proof.ProofException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Requests and responses: words in one line, separated by tabs. An answer begins with its kind. */
final class ProofWords {
  static final String OK = "ok";
  static final String FAILED = "failed";

  private static final String SEPARATOR = "\t";

  private ProofWords() {}

  /** One line; what would end it, or a word in it, becomes a space. */
  static String join(final List<String> words) {
    return String.join(SEPARATOR, words.stream().map(ProofWords::plain).toList());
  }

  /**
   * A text with spaces in place of what a terminal obeys or does not show: controls (C1 too), signs
   * that turn text around, and other line ends.
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
