package io.zerohop.spark.ui;

import scala.collection.Seq;
import scala.xml.Node;

/**
 * The method that Spark 3.5 for Scala 2.12 calls on a page: there {@code Seq} is the general one.
 * The compiler adds this method to the page of {@link ShuffleTab}, beside that of Scala 2.13.
 */
interface RenderJavax212 {
  Seq<Node> render(javax.servlet.http.HttpServletRequest request);
}
