package io.zerohop.device.exchange;

import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.Sockets;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * A process of the same user that knows no secret, takes the place of a server's socket and passes
 * on what both sides say. It prints a line once it is in place, and one for each connection that
 * ended. Also used by tests of other modules.
 */
public final class RelayingProcess {
  /** What an altered segment has been altered at. */
  public static final String MARK = "ALICE";

  /** CRC32C's polynomial, of 33 bits: what is changed by it keeps its checksum. */
  private static final long POLYNOMIAL = 0x82F63B78L << 1 | 1;

  private static final int HELLO = 1;
  private static final int CHALLENGE = 2;
  private static final int WELCOME = 4;
  private static final int FETCH = 5;

  /** What it does beyond passing on. */
  public enum Mode {
    /** Asks for segment 1 by itself as soon as the handshake is through. */
    READ,

    /** States its own process in place of the two others. */
    RESTATE,

    /** Alters each segment but the first, so that its checksums stay. */
    SUBSTITUTE
  }

  private final Mode mode;
  private final byte[] buffer = new byte[Sockets.MAX_MESSAGE_BYTES];
  private boolean welcomed;
  private String read = "";
  private int passed;

  private RelayingProcess(final Mode mode) {
    this.mode = mode;
  }

  /** Arguments: a mode and the path of a socket. */
  public static void main(final String[] arguments) throws Exception {
    NativeLibrary.require();
    final Path socket = Path.of(arguments[1]);
    final Path real = socket.resolveSibling(".real");
    Files.move(socket, real);
    final int listener = Sockets.listen(socket.toString(), 10);
    System.out.println("in its place");
    for (int i = 0; i < Integer.MAX_VALUE; i++) {
      Sockets.poll(new int[] {listener}, new int[] {Sockets.READABLE}, 1, 1_000);
      final int client = Sockets.accept(listener);
      if (client >= 0) {
        System.out.println(
            new RelayingProcess(Mode.valueOf(arguments[0]))
                .relay(client, Sockets.connect(real.toString())));
      }
    }
  }

  /** Passes on until one side ends; says what came of it. */
  private String relay(final int client, final int server) {
    boolean open = true;
    while (open) {
      final int[] events = {Sockets.READABLE, Sockets.READABLE};
      Sockets.poll(new int[] {client, server}, events, 2, 1_000);
      open = (events[0] == 0 || pass(client, server)) && (events[1] == 0 || pass(server, client));
    }
    Descriptor.close(client);
    Descriptor.close(server);
    return "welcomed=" + welcomed + " read=" + read;
  }

  private boolean pass(final int from, final int to) {
    final int[] descriptor = new int[1];
    final int count = Sockets.receive(from, buffer, 0, buffer.length, descriptor);
    if (count <= 0) {
      return count < 0;
    }
    final byte[] frame = Arrays.copyOf(buffer, count);
    final int type = frame[3]; // One frame at a time: each side waits for the other.
    if (mode == Mode.RESTATE && (type == HELLO || type == CHALLENGE)) {
      final ByteBuffer own = ByteBuffer.allocate(ProcessIdentity.BYTES);
      ProcessIdentity.self().put(own);
      System.arraycopy(
          own.array(), 0, frame, Frame.HEADER_BYTES + Frame.NONCE_BYTES, own.capacity());
    }
    if (type == WELCOME) {
      welcomed = true;
      read = mode == Mode.READ ? fetch(from, frame[2]) : "";
    }
    send(to, frame, descriptor[0]);
    return true;
  }

  /** Passes a descriptor on, or another one in its place; it is closed here. */
  private void send(final int to, final byte[] frame, final int descriptor) {
    if (descriptor < 0) {
      Sockets.send(to, frame, 0, frame.length, -1);
      return;
    }
    passed++;
    final boolean alters = mode == Mode.SUBSTITUTE && passed > 1;
    final int sent = alters ? altered(descriptor) : descriptor;
    Sockets.send(to, frame, 0, frame.length, sent);
    Descriptor.close(sent);
  }

  /** The first text in segment 1. */
  private String fetch(final int server, final byte version) {
    final int seal = version < 3 ? 0 : Frame.SEAL_BYTES;
    final ByteBuffer question = ByteBuffer.allocate(Frame.HEADER_BYTES + Long.BYTES + seal);
    question.putShort(Frame.MAGIC).put(version).put((byte) FETCH).putInt(Long.BYTES + seal);
    question.putLong(1);
    Sockets.send(server, question.array(), 0, question.capacity(), -1);
    Sockets.poll(new int[] {server}, new int[] {Sockets.READABLE}, 1, 60_000);
    final int[] descriptor = new int[1];
    if (Sockets.receive(server, new byte[4096], 0, 4096, descriptor) <= 0 || descriptor[0] < 0) {
      return "";
    }
    final int bytes = (int) Descriptor.status(descriptor[0]).bytes();
    final byte[] text = new byte[MARK.length()];
    Memory.view(Memory.map(descriptor[0], bytes, false), bytes).get(text);
    Descriptor.close(descriptor[0]);
    return new String(text, StandardCharsets.US_ASCII);
  }

  /** A sealed copy of a segment, with other bytes at each mark; the original is closed. */
  private static int altered(final int original) {
    final int bytes = (int) Descriptor.status(original).bytes();
    final ByteBuffer from = Memory.view(Memory.map(original, bytes, false), bytes);
    final int copy = Memory.create("altered");
    Memory.resize(copy, bytes);
    final ByteBuffer to = Memory.view(Memory.map(copy, bytes, true), bytes);
    to.put(from);
    final byte[] mark = MARK.getBytes(StandardCharsets.US_ASCII);
    for (int at = 0; at + mark.length <= bytes; at++) {
      int same = 0;
      while (same < mark.length && from.get(at + same) == mark[same]) {
        same++;
      }
      for (int i = 0; same == mark.length && i < mark.length; i++) {
        to.put(at + i, (byte) (mark[i] ^ POLYNOMIAL >>> 8 * i));
      }
    }
    Memory.seal(copy, false);
    Descriptor.close(original);
    return copy;
  }
}
