package io.zerohop.spark.compat;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** What classes of ours name, read from their constant pools. */
public final class ConstantPool {
  private ConstantPool() {}

  /**
   * A class, or a member of one, that a class of ours names.
   *
   * @param user the class of ours, with slashes
   * @param owner the named class, with slashes
   * @param member a blank, the member's name, a blank and its descriptor; empty for a class
   */
  public record Reference(String user, String owner, String member) {}

  /** Returns what all classes in a folder name. */
  public static List<Reference> of(final Path classes) throws IOException {
    final List<Reference> references = new ArrayList<>();
    try (Stream<Path> files = Files.walk(classes)) {
      for (final Path file : files.filter(f -> f.toString().endsWith(".class")).toList()) {
        final String path = classes.relativize(file).toString();
        try (InputStream in = Files.newInputStream(file)) {
          addAll(new DataInputStream(in), path.substring(0, path.length() - 6), references);
        }
      }
    }
    return references;
  }

  private static void addAll(final DataInputStream in, final String user, final List<Reference> to)
      throws IOException {
    in.skipNBytes(8);
    final int count = in.readUnsignedShort();
    final Object[] texts = new Object[count];
    final int[][] pairs = new int[count][];
    final int[] tags = new int[count];
    for (int i = 1; i < count; i++) {
      tags[i] = in.readUnsignedByte();
      switch (tags[i]) {
        case 1 -> texts[i] = in.readUTF();
        case 3, 4 -> in.skipNBytes(4);
        case 5, 6 -> {
          in.skipNBytes(8);
          i++;
        }
        case 7, 8, 16, 19, 20 -> pairs[i] = new int[] {in.readUnsignedShort()};
        case 9, 10, 11, 12, 17, 18 ->
            pairs[i] = new int[] {in.readUnsignedShort(), in.readUnsignedShort()};
        case 15 -> in.skipNBytes(3);
        default -> throw new IOException("constant of kind " + tags[i]);
      }
    }
    for (int i = 1; i < count; i++) {
      if (tags[i] == 7) {
        to.add(new Reference(user, (String) texts[pairs[i][0]], ""));
      } else if (tags[i] >= 9 && tags[i] <= 11) {
        final int[] member = pairs[pairs[i][1]];
        final String text = " " + texts[member[0]] + " " + texts[member[1]];
        to.add(new Reference(user, (String) texts[pairs[pairs[i][0]][0]], text));
      }
    }
  }
}
