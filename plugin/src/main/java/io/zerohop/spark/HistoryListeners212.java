package io.zerohop.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.status.ElementTrackingStore;
import scala.collection.Seq;

/**
 * The method that Spark for Scala 2.12 calls on a plugin of the history server: there {@code Seq}
 * is the general one. The compiler adds this method to {@link ZerohopHistoryPlugin}, beside that of
 * Scala 2.13.
 */
interface HistoryListeners212 {
  Seq<SparkListener> createListeners(SparkConf conf, ElementTrackingStore store);
}
