package io.zerohop.spark.rows;

import io.zerohop.shuffle.fetch.FetchedBlock;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import scala.Product2;
import scala.Tuple2;
import scala.collection.Iterator;

/** Records of any serializer: its own stream, right over the block's bytes. */
final class StreamRecords implements BlockRecords {
  private final SerializerInstance instance;

  StreamRecords(final Serializer serializer) {
    instance = serializer.newInstance();
  }

  @Override
  @SuppressWarnings("unchecked")
  public Iterator<? extends Product2<?, ?>> of(final FetchedBlock block) {
    return (Iterator<Tuple2<Object, Object>>)
        (Iterator<?>) instance.deserializeStream(block.stream()).asKeyValueIterator();
  }
}
