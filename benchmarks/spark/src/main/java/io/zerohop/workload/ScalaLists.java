package io.zerohop.workload;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import scala.collection.Iterable;
import scala.collection.Iterator;

/**
 * Sequences of Spark's as Java's lists, with Scala 2.12 and 2.13 alike: {@code Seq} is another
 * class in each, so a method that returns one is called by its name.
 */
public final class ScalaLists {
  private ScalaLists() {}

  /** The items of an iterable or an iterator of Scala's, in their order; a copy. */
  public static List<Object> of(final Object items) {
    final Iterator<?> rest =
        items instanceof Iterator<?> iterator ? iterator : ((Iterable<?>) items).iterator();
    final List<Object> list = new ArrayList<>();
    while (rest.hasNext()) {
      list.add(rest.next());
    }
    return list;
  }

  /**
   * What a public method returns, as a list.
   *
   * @throws IllegalStateException if there is no such method, or it fails
   */
  public static <T> List<T> get(
      final Class<T> type, final Object owner, final String method, final Object... arguments) {
    final Class<?>[] classes =
        Arrays.stream(arguments).map(Object::getClass).toArray(Class<?>[]::new);
    try {
      return of(owner.getClass().getMethod(method, classes).invoke(owner, arguments)).stream()
          .map(type::cast)
          .toList();
    } catch (final ReflectiveOperationException e) {
      throw new IllegalStateException(owner.getClass().getName() + "." + method, e);
    }
  }
}
