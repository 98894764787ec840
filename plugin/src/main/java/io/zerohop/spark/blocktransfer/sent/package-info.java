/**
 * Path {@code sent}: what {@link io.zerohop.shuffle.transport.remote} asks and sends, carried by
 * uploads to the block port that each executor of Spark's has open, with whatever proof and
 * encryption Spark has on. An upload's id is a batch of shuffle blocks, which no migration of
 * Spark's has, and whose numbers are ours; see docs/sent.md.
 */
package io.zerohop.spark.blocktransfer.sent;
