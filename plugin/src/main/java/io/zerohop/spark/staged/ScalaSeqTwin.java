package io.zerohop.spark.staged;

import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.ShuffleBlockInfo;
import org.apache.spark.storage.ShuffleMergedBlockId;
import scala.Option;
import scala.collection.Seq;

/**
 * Spark's resolver traits return Scala's {@code Seq}, which is {@code scala.collection.Seq} when
 * Spark was built with Scala 2.12 and {@code scala.collection.immutable.Seq} with 2.13. A class
 * that returns the second and also implements this interface gets bridge methods for the first from
 * the Java compiler, so one class file serves both.
 */
interface ScalaSeqTwin {
  Seq<ShuffleBlockInfo> getStoredShuffles();

  Seq<ManagedBuffer> getMergedBlockData(ShuffleMergedBlockId blockId, Option<String[]> dirs);
}
