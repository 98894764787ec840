package io.zerohop.spark.blocktransfer;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;
import java.util.Arrays;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import scala.collection.Seq;

/**
 * Two methods of Spark's index resolver that cannot be linked directly by one jar: the first
 * returns another {@code Seq} with each Scala version, the second came with Spark 4.0.
 */
final class StoredShuffles {
  private static final MethodHandle GET = find("getStoredShuffles");
  private static final MethodHandle SKIP = find("addShuffleToSkip");

  private StoredShuffles() {}

  /** The shuffles that the resolver has files of. */
  static Seq<?> of(final IndexShuffleBlockResolver index) {
    return (Seq<?>) call(GET, index);
  }

  /** Tells the resolver to refuse migrated blocks of a shuffle; nothing before Spark 4.0. */
  static void skip(final IndexShuffleBlockResolver index, final int shuffleId) {
    if (SKIP != null) {
      call(SKIP, index, shuffleId);
    }
  }

  private static Object call(final MethodHandle handle, final Object... arguments) {
    try {
      return handle.invokeWithArguments(arguments);
    } catch (final RuntimeException | Error e) {
      throw e;
    } catch (final Throwable e) {
      throw new IllegalStateException(e);
    }
  }

  private static MethodHandle find(final String name) {
    final Method method =
        Arrays.stream(IndexShuffleBlockResolver.class.getMethods())
            .filter(candidate -> candidate.getName().equals(name) && !candidate.isBridge())
            .findFirst()
            .orElse(null);
    try {
      return method == null ? null : MethodHandles.lookup().unreflect(method);
    } catch (final IllegalAccessException e) {
      throw new IllegalStateException("Spark hides " + method, e);
    }
  }
}
