package io.zerohop.device;

import java.io.Serializable;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * A text for users as fields: a log line, an exception, a reason or a finding of the doctor. Code
 * that shows a message takes the fields that it needs, and never parses the text. The text is made
 * here alone, in one order: what happened, where, why, what to do, the code. Immutable and thread
 * safe.
 *
 * <p>No field is null; a field that has nothing to say is empty. A field is one line of at most
 * {@value #MAX_CHARS} characters: what another process or library said can neither forge a line of
 * the log, nor fill it, nor turn its direction.
 *
 * @param code the label of a {@link LogCode}, such as {@code ZH-1001}, by which docs/runbook.md
 *     explains the message; empty if there is none
 * @param what happened, as a sentence without its full stop
 * @param where it happened: an executor, device, peer or path
 * @param why it happened, mostly the message of another failure
 * @param remedy the key to set or the command to run, as a sentence without its full stop
 */
public record Message(String code, String what, String where, String why, String remedy)
    implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int MAX_CHARS = 4_096;

  /** What breaks or hides a line: control and format characters, such as those of direction. */
  private static final Pattern UNPRINTABLE = Pattern.compile("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]");

  /** A failure that has a message, and not only a text. */
  public interface Source {
    /** Returns what happened, where, why and what to do, as fields. */
    Message message();
  }

  /** Makes one line of each field. */
  public Message {
    code = line(code);
    what = line(what);
    where = line(where);
    why = line(why);
    remedy = line(remedy);
  }

  private static String line(final String text) {
    int plain = 0; // Readers make messages for each owner, so the usual text has to cost nothing.
    while (plain < text.length() && text.charAt(plain) >= ' ' && text.charAt(plain) <= '~') {
      plain++;
    }
    if (plain == text.length() && plain <= MAX_CHARS) {
      return text;
    }
    final String cut = text.length() <= MAX_CHARS ? text : text.substring(0, MAX_CHARS - 3) + "...";
    return UNPRINTABLE.matcher(cut).replaceAll(" ");
  }

  /** Returns a message without a code, place, reason or remedy. */
  public static Message of(final String what) {
    return new Message("", what, "", "", "");
  }

  /**
   * Returns the message of a failure. A failure of another library says what happened by its class,
   * too.
   */
  public static Message of(final Throwable failure) {
    return failure instanceof Source known ? known.message() : of(failure.toString());
  }

  public Message at(final String place) {
    return new Message(code, what, place, why, remedy);
  }

  /** Returns this message with another remedy; before {@code because}, which keeps both. */
  public Message remedy(final String key) {
    return new Message(code, what, where, why, key);
  }

  /** Returns this message, with a remedy if it has none. */
  public Message orRemedy(final String otherwise) {
    return remedy.isEmpty() ? remedy(otherwise) : this;
  }

  public Message code(final LogCode other) {
    return new Message(other.label(), what, where, why, remedy);
  }

  /** Returns this message with a reason that is plain text. */
  public Message because(final String reason) {
    return new Message(code, what, where, reason, remedy);
  }

  /**
   * Returns this message with another one as its reason. A remedy or code that this one lacks is
   * the other's; a code that both have stays in the reason, since it is mostly the one to act on.
   */
  public Message because(final Message reason) {
    final boolean takesCode = code.isEmpty();
    final boolean takesRemedy = remedy.isEmpty();
    return new Message(
        takesCode ? reason.code : code,
        what,
        where,
        text(reason.happened(), takesRemedy ? "" : reason.remedy, takesCode ? "" : reason.code),
        takesRemedy ? reason.remedy : remedy);
  }

  /** Returns this message with a failure as its reason; as {@link #because(Message)}. */
  public Message because(final Throwable failure) {
    return because(of(failure));
  }

  /** Returns what happened and why, for output that shows the place separately. */
  public String reasoned() {
    return what + (why.isEmpty() ? "" : ": " + why);
  }

  /** Returns what happened, where and why, without what to do and the code. */
  public String happened() {
    return what + (where.isEmpty() ? "" : " (" + where + ")") + (why.isEmpty() ? "" : ": " + why);
  }

  /** Returns the whole message as one line. */
  public String text() {
    return text(happened(), remedy, code);
  }

  private static String text(final String happened, final String remedy, final String code) {
    return happened
        + (remedy.isEmpty() ? "" : "; " + remedy)
        + (code.isEmpty() ? "" : " [" + code + "]");
  }

  public void info(final Logger log) {
    log.info(text());
  }

  /** Logs a warning. The message has a code, as each warning and error has. */
  public void warn(final Logger log) {
    warn(log, null);
  }

  /**
   * Logs a warning; as {@link #warn(Logger)}.
   *
   * @param failure logged with its stack trace
   */
  public void warn(final Logger log, final @Nullable Throwable failure) {
    assert !code.isEmpty() : what;
    log.warn(text(), failure);
  }

  /** Logs an error. The message has a code, as each warning and error has. */
  public void error(final Logger log) {
    error(log, null);
  }

  /**
   * Logs an error; as {@link #error(Logger)}.
   *
   * @param failure logged with its stack trace
   */
  public void error(final Logger log, final @Nullable Throwable failure) {
    assert !code.isEmpty() : what;
    log.error(text(), failure);
  }

  @Override
  public String toString() {
    return text();
  }
}
