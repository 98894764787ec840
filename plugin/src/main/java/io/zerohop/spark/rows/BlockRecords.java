package io.zerohop.spark.rows;

import io.zerohop.shuffle.fetch.FetchedBlock;
import scala.Product2;
import scala.collection.Iterator;

/** Decodes the bytes of a block into records. Belongs to one reader; holds no block. */
interface BlockRecords {

  /** The records of a block, valid until the fetcher moves past it. */
  Iterator<? extends Product2<?, ?>> of(FetchedBlock block);
}
