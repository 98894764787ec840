package io.zerohop.spark.rapids.api;

import io.zerohop.spark.compat.ConstantPool;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;

/** What classes of ours name of cudf and of RAPIDS. */
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
    for (final ConstantPool.Reference reference : ConstantPool.of(classes)) {
      final String owner = reference.owner();
      if (owner.equals(STAND_IN)) {
        continue; // Of Spark's, under the name that the compiler sees.
      }
      if (THEIRS.stream().noneMatch(owner::startsWith) || owner.startsWith(OURS_AMONG_THEIRS)) {
        continue;
      }
      final boolean isKudo =
          reference.user().contains(OURS_AMONG_THEIRS) || owner.startsWith(SERIALIZER);
      final RapidsFeature feature = isKudo ? RapidsFeature.KUDO : RapidsFeature.SHUFFLE;
      links.add(feature + " " + owner.replace('/', '.') + reference.member());
    }
    return links;
  }
}
