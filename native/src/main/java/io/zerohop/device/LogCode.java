package io.zerohop.device;

import org.slf4j.Logger;

/**
 * The code by which a warning, an error or a reason is found in docs/runbook.md, where it says what
 * it means, what it costs and what to do. Codes are enum constants, each used at one place. Each
 * module has an enum of its own; numbers are unique among all of them, and are not given again when
 * a code goes.
 *
 * <p>Everything of level WARN or ERROR is logged by these methods, which put the code at the end of
 * the line; a stack trace follows it. Thread safe.
 */
public interface LogCode {
  /** Four digits, of which the first is the chapter of the runbook. */
  int number();

  /** What the log shows, such as {@code ZH-1001}. */
  default String label() {
    return "ZH-" + number();
  }

  /** Begins a message with this code. */
  default Message says(final String what) {
    return Message.of(what).code(this);
  }

  /**
   * Logs a warning.
   *
   * @param log whose name the line has
   * @param message with a place ({@code {}}) for each argument, as SLF4J has it
   * @param arguments an exception more than there are places is logged with its stack trace
   */
  default void warn(final Logger log, final String message, final Object... arguments) {
    log.warn(marked(message), arguments);
  }

  /** Logs an error; as {@link #warn}. */
  default void error(final Logger log, final String message, final Object... arguments) {
    log.error(marked(message), arguments);
  }

  /** A text with the code at its end, as for a reason that a message or an exception carries. */
  default String marked(final String text) {
    return text + " [" + label() + "]";
  }
}
