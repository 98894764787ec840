package io.zerohop.spark.rows;

import java.io.IOException;
import scala.Product2;
import scala.collection.Iterator;

/** A way to turn records into the bytes of partitions. Belongs to one map task. */
interface RecordAppender<K, V> {

  /**
   * Appends all records.
   *
   * @return how many there were
   */
  long appendAll(Iterator<Product2<K, V>> records) throws IOException;
}
