package io.zerohop.spark.control;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;

/** Answers by the first byte of the question, and remembers who asked and who went. */
final class AskedService implements ControlService {
  static final char ECHO = 'e';
  static final char ELSEWHERE = 't';
  static final char LARGE = 'l';
  static final char REFUSE = 'r';
  static final char BREAK = 'b';
  static final char FATAL = 'f';
  static final char NEVER = 'n';

  final Queue<Long> asked = new ConcurrentLinkedQueue<>();
  final Queue<Long> gone = new ConcurrentLinkedQueue<>();

  static ByteBuffer question(final char kind, final String text) {
    return ByteBuffer.wrap((kind + text).getBytes(StandardCharsets.UTF_8));
  }

  static String text(final ByteBuffer bytes) {
    return StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
  }

  static byte largeByte(final int at) {
    return (byte) (at * 31 + (at >> 13));
  }

  @Override
  public void asked(final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    asked.add(link);
    final char kind = (char) question.get();
    final ByteBuffer copy = ByteBuffer.allocate(question.remaining()).put(question).flip();
    switch (kind) {
      case ECHO -> answer.accept(copy);
      case ELSEWHERE -> new Thread(() -> answer.accept(copy)).start();
      case LARGE -> answer.accept(large(Integer.parseInt(text(copy))));
      case REFUSE -> throw new ZerohopException(Category.RETRY, "not " + text(copy) + "\nby me");
      case FATAL -> throw new ZerohopException(Category.FATAL, "lost");
      case BREAK -> throw new IllegalArgumentException();
      default -> {
        // NEVER.
      }
    }
  }

  private static ByteBuffer large(final int size) {
    final byte[] bytes = new byte[size];
    for (int i = 0; i < size; i++) {
      bytes[i] = largeByte(i);
    }
    return ByteBuffer.wrap(bytes);
  }

  @Override
  public void disconnected(final long link) {
    gone.add(link);
  }
}
