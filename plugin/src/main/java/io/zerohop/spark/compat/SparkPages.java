package io.zerohop.spark.compat;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Objects;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils$;
import scala.Function0;
import scala.collection.immutable.Seq;
import scala.xml.Node;

/**
 * The frame of a page in Spark's UI. The method that makes it has another servlet package and
 * another {@code Seq} by version, and a further argument from 4.2 on, so it is found by its name;
 * all behind the first four arguments have defaults.
 */
public record SparkPages(Method header) {
  private static final String HEADER = "headerSparkPage";
  private static final int GIVEN = 4;

  /**
   * Finds it in this Spark.
   *
   * @throws IllegalStateException if it is not there
   */
  public static SparkPages find() {
    return Arrays.stream(UIUtils$.class.getMethods())
        .filter(method -> method.getName().equals(HEADER))
        .findFirst()
        .map(SparkPages::new)
        .orElseThrow(() -> unknown(new NoSuchMethodException("UIUtils." + HEADER)));
  }

  /** A page with Spark's header around it, for the servlet request that Spark called it with. */
  @SuppressWarnings("unchecked")
  public Seq<Node> inFrame(
      final Object request, final String title, final Seq<Node> content, final SparkUITab tab) {
    final UIUtils$ utils = UIUtils$.MODULE$;
    final Function0<Seq<Node>> body = () -> content;
    try {
      final Object[] arguments = new Object[header.getParameterCount()];
      arguments[0] = request;
      arguments[1] = title;
      arguments[2] = body;
      arguments[3] = tab;
      for (int i = GIVEN; i < arguments.length; i++) {
        arguments[i] = UIUtils$.class.getMethod(HEADER + "$default$" + (i + 1)).invoke(utils);
      }
      return (Seq<Node>) header.invoke(utils, arguments);
    } catch (final InvocationTargetException e) {
      throw SparkLinks.rethrow(Objects.requireNonNullElse(e.getCause(), e));
    } catch (final ReflectiveOperationException e) {
      throw unknown(e);
    }
  }

  private static IllegalStateException unknown(final ReflectiveOperationException why) {
    return SparkLinks.unsupported("the UI's pages", why);
  }
}
