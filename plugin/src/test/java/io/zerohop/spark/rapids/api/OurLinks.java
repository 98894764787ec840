package io.zerohop.spark.rapids.api;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.stream.Stream;

/** What classes of ours name of cudf and of RAPIDS, read from their constant pools. */
final class OurLinks {
  private static final List<String> THEIRS = List.of("ai/rapids/", "com/nvidia/");
  private static final String SERIALIZER = "com/nvidia/spark/rapids/jni/kudo/";
  private static final String STAND_IN =
      "com/nvidia/spark/rapids/StandInForAttributeSeqInAPackageObject";
  private static final String OURS_AMONG_THEIRS = "com/nvidia/spark/rapids/Zerohop";

  private OurLinks() {}

  /** Of all classes in a folder, one a line, as the resource has them. */
  static SortedSet<String> of(final Path classes) throws IOException {
    final SortedSet<String> links = new TreeSet<>();
    try (Stream<Path> files = Files.walk(classes)) {
      for (final Path file : files.filter(f -> f.toString().endsWith(".class")).toList()) {
        final boolean isPartitioning = file.toString().contains(OURS_AMONG_THEIRS);
        try (InputStream in = Files.newInputStream(file)) {
          addAll(new DataInputStream(in), isPartitioning, links);
        }
      }
    }
    return links;
  }

  private static void addAll(
      final DataInputStream in, final boolean isPartitioning, final SortedSet<String> to)
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
        add((String) texts[pairs[i][0]], "", isPartitioning, to);
      } else if (tags[i] >= 9 && tags[i] <= 11) {
        final int[] member = pairs[pairs[i][1]];
        final String text = " " + texts[member[0]] + " " + texts[member[1]];
        add((String) texts[pairs[pairs[i][0]][0]], text, isPartitioning, to);
      }
    }
  }

  private static void add(
      final String owner,
      final String member,
      final boolean isPartitioning,
      final SortedSet<String> to) {
    if (owner.equals(STAND_IN)) {
      return; // Of Spark's, under the name that the compiler sees.
    }
    if (THEIRS.stream().noneMatch(owner::startsWith) || owner.startsWith(OURS_AMONG_THEIRS)) {
      return;
    }
    final boolean isKudo = isPartitioning || owner.startsWith(SERIALIZER);
    final RapidsFeature feature = isKudo ? RapidsFeature.KUDO : RapidsFeature.SHUFFLE;
    to.add(feature + " " + owner.replace('/', '.') + member);
  }
}
