package io.zerohop.device;

/**
 * The code by which a warning, an error or a reason is found in docs/runbook.md, where it says what
 * it means, what it costs and what to do. Codes are enum constants, each used at one place. Each
 * module has an enum of its own; numbers are unique among all of them, and are not given again when
 * a code goes. Thread safe.
 */
public interface LogCode {
  /** Four digits; the first is the chapter of the runbook. */
  int number();

  /** What the log shows, such as {@code ZH-1001}. */
  default String label() {
    return "ZH-" + number();
  }

  /** Begins a message with this code. */
  default Message says(final String what) {
    return Message.of(what).code(this);
  }
}
