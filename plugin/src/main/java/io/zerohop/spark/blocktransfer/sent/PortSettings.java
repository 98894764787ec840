package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.posix.Clock;
import io.zerohop.spark.conf.ZerohopConf.SentCodec;
import java.time.Duration;
import java.util.function.Supplier;
import org.apache.spark.storage.BlockManagerId;

/**
 * Settings of a carrier. Immutable.
 *
 * @param executorId this executor
 * @param self where its block manager is
 * @param neighbours where the others' are
 * @param encryption what protects its connections, in words
 * @param codec what messages are to be compressed with
 * @param connectLimit longest time to connect
 * @param answerLimit longest time for an answer
 * @param clock by which these are measured
 */
record PortSettings(
    String executorId,
    Supplier<BlockManagerId> self,
    Neighbours neighbours,
    String encryption,
    SentCodec codec,
    Duration connectLimit,
    Duration answerLimit,
    Clock clock) {}
