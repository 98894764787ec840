package io.zerohop.spark.staged;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufInputStream;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.spark.keeper.KeptId;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.staged.ZerohopBlockResolver.MemoryBlockBuffer;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.Proxy;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.DownloadFile;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.SimpleDownloadFile;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.shuffle.ShuffleBlockResolver;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import org.jspecify.annotations.Nullable;
import scala.Option;

/**
 * The fallback transport: whole blocks through Spark's block transfer service, with Spark's own
 * retries, compression and encryption. Blocks of this executor come from its files. Large blocks
 * come by way of a temporary file, as {@code spark.network.maxRemoteBlockSizeFetchToMem} says.
 * Thread safe.
 *
 * <p>An owner with a location proves with each request that it is that one ({@link OwnerProof}).
 *
 * @param resolver serves this executor's own blocks
 * @param largeBytes blocks over this size are received in files
 */
public record BlockTransferTransport(SparkEnv env, ShuffleBlockResolver resolver, long largeBytes)
    implements FallbackTransport {

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    if (isOwn(source)) {
      blocks.forEach(block -> readOwn(source, block, sink));
      return;
    }
    final List<Block> small = new ArrayList<>();
    for (final Block block : blocks) {
      if (block.bytes() > largeBytes) {
        request(source, List.of(block), new TemporaryFiles(env), sink);
      } else {
        small.add(block);
      }
    }
    if (!small.isEmpty()) {
      request(source, small, null, sink);
    }
  }

  @Override
  public boolean answers(final BlockSource source, final Duration limit) {
    final BlockManagerId owner = (BlockManagerId) source.address();
    return isOwn(source) || PortProbe.answers(owner.host(), owner.port(), limit, Clock.system());
  }

  /** Returns whether the blocks are this very executor's. */
  public boolean isOwn(final BlockSource source) {
    return executorOf(source).equals(env.executorId());
  }

  /** The owner as Spark knows it: of kept blocks, too, as long as it lives. */
  private static String executorOf(final BlockSource source) {
    return KeptId.executorOf(((BlockManagerId) source.address()).executorId());
  }

  private void readOwn(final BlockSource source, final Block block, final Sink sink) {
    final ManagedBuffer buffer;
    try {
      buffer = resolver.getBlockData(id(block), Option.empty());
      if (buffer instanceof MemoryBlockBuffer inMemory) {
        inMemory.bytes(); // What is damaged in memory fails here, and not in the sink.
      }
    } catch (final Exception e) {
      // Scala throws IOException from here without declaring it.
      sink.failed(block, e);
      return;
    }
    sink.arrived(block, payload(source, block, buffer, () -> {}));
  }

  private void request(
      final BlockSource source,
      final List<Block> blocks,
      final @Nullable TemporaryFiles files,
      final Sink sink) {
    final BlockManagerId owner = (BlockManagerId) source.address();
    final Map<String, Block> byId =
        new ConcurrentHashMap<>(
            blocks.stream().collect(Collectors.toMap(Block::toString, block -> block)));
    final DownloadFileManager manager = files;
    env.blockManager()
        .blockStoreClient()
        .fetchBlocks(
            owner.host(),
            owner.port(),
            executorOf(source),
            names(source, blocks),
            new Listener(this, source, byId, files, sink),
            manager);
  }

  /** What is asked for: the blocks, and behind them the proof, which nobody waits for. */
  private static String[] names(final BlockSource source, final List<Block> blocks) {
    final List<String> names = new ArrayList<>(blocks.size() + 1);
    blocks.forEach(block -> names.add(block.toString()));
    final Location owner = source.location();
    if (owner != null) {
      names.add(OwnerProof.of(blocks.get(0).shuffleId(), owner.incarnation()).name());
    }
    return names.toArray(String[]::new);
  }

  private static ShuffleBlockId id(final Block block) {
    return new ShuffleBlockId(block.shuffleId(), block.mapId(), block.partition());
  }

  private Payload payload(
      final BlockSource source,
      final Block block,
      final ManagedBuffer buffer,
      final Runnable afterRelease) {
    return new Payload() {
      @Override
      public long bytes() {
        return buffer.size();
      }

      @Override
      public InputStream open(final BooleanSupplier ended) throws IOException {
        return new CheckedBlockStream(
            env.serializerManager().wrapStream(id(block), BufferStream.of(buffer)), block, source);
      }

      @Override
      public void release() {
        buffer.release();
        afterRelease.run();
      }
    };
  }

  /** Reports each block once, although Spark's client may report a failed one again. */
  private record Listener(
      BlockTransferTransport transport,
      BlockSource source,
      Map<String, Block> waiting,
      @Nullable TemporaryFiles files,
      Sink sink)
      implements BlockFetchingListener {

    @Override
    public void onBlockFetchSuccess(final String blockId, final ManagedBuffer data) {
      final Block block = waiting.remove(blockId);
      if (block != null) {
        data.retain();
        final Runnable afterRelease = files == null ? () -> {} : files::delete;
        sink.arrived(block, transport.payload(source, block, data, afterRelease));
      }
    }

    @Override
    public void onBlockFetchFailure(final String blockId, final Throwable cause) {
      final Block block = waiting.remove(blockId);
      if (block != null) {
        if (files != null) {
          files.delete();
        }
        sink.failed(block, cause);
      }
    }
  }

  /** Streams over what Spark's client has fetched, each with a position of its own. */
  static final class BufferStream {
    private BufferStream() {}

    /**
     * A stream from the first byte, which takes no reference: it is read only while the caller
     * holds the buffer, and need not be closed.
     */
    static InputStream of(final ManagedBuffer buffer) throws IOException {
      if (!(buffer instanceof NettyManagedBuffer)) {
        return buffer.createInputStream();
      }
      // Its own streams share one position, so that the second would find nothing left.
      final ByteBuf duplicate = (ByteBuf) buffer.convertToNetty();
      duplicate.release(); // Retained for one who sends it.
      return new ByteBufInputStream(duplicate);
    }
  }

  /**
   * A staged block's stream whose failures say that the block could not be read. Bytes that cannot
   * be decompressed or end too early must make Spark run the map task again, and not just this
   * task. Not thread safe.
   */
  private static final class CheckedBlockStream extends FilterInputStream {
    private final Block block;
    private final BlockSource source;

    CheckedBlockStream(final InputStream in, final Block block, final BlockSource source) {
      super(in);
      this.block = block;
      this.source = source;
    }

    @Override
    public int read() {
      try {
        return in.read();
      } catch (final IOException e) {
        throw damaged(e);
      }
    }

    @Override
    public int read(final byte[] bytes, final int offset, final int length) {
      try {
        return in.read(bytes, offset, length);
      } catch (final IOException e) {
        throw damaged(e);
      }
    }

    @Override
    public long skip(final long count) {
      try {
        return in.skip(count);
      } catch (final IOException e) {
        throw damaged(e);
      }
    }

    private BlockFetchException damaged(final IOException cause) {
      return new BlockFetchException(
          block,
          source,
          SparkCode.STAGED_DAMAGED
              .says("a staged block is damaged")
              .at(block + " of executor " + source.executorId())
              .because(cause),
          cause);
    }
  }

  /**
   * The temporary files that one request for a large block is received in. The bytes are as the
   * owner's file has them, so they are encrypted where that is asked for. Thread safe.
   */
  private static final class TemporaryFiles implements DownloadFileManager {
    private final SparkEnv env;
    private final List<DownloadFile> files = new ArrayList<>();
    private boolean deleted;

    TemporaryFiles(final SparkEnv env) {
      this.env = env;
    }

    @Override
    public DownloadFile createTempFile(final TransportConf conf) {
      return new SimpleDownloadFile(
          env.blockManager().diskBlockManager().createTempLocalBlock()._2(), conf);
    }

    /** Keeps the file until {@link #delete}; false tells Spark to delete it at once. */
    @Override
    public synchronized boolean registerTempFileToClean(final DownloadFile file) {
      if (deleted) {
        return false;
      }
      files.add(file);
      return true;
    }

    /** Deletes all files, those that come later too. */
    synchronized void delete() {
      deleted = true;
      files.forEach(DownloadFile::delete);
      files.clear();
    }
  }

  /**
   * Tests within a time limit whether a port is served. Spark's client would try for three times
   * five seconds before it gave up an executor that is dead.
   */
  public static final class PortProbe {
    private static final Duration PAUSE = Duration.ofMillis(500);

    private PortProbe() {}

    /** Connects and disconnects, within a limit. */
    @FunctionalInterface
    interface Attempt {
      void run(int limitMillis) throws IOException;
    }

    /**
     * False if the connection was refused, or if nothing answered, or there was no way to the host,
     * for all of the limit. The kernel accepts it, so a process that is only busy answers. What
     * says nothing of the port, such as a name that cannot be looked up now or an interrupt, counts
     * as an answer. To look the name up may take longer than the limit.
     *
     * @param clock by which it tries again
     */
    public static boolean answers(
        final String host, final int port, final Duration limit, final Clock clock) {
      final InetSocketAddress address = new InetSocketAddress(host, port);
      return answers(
          limitMillis -> {
            try (Socket socket = new Socket(Proxy.NO_PROXY)) {
              socket.connect(address, limitMillis);
            }
          },
          limit,
          clock);
    }

    static boolean answers(final Attempt attempt, final Duration limit, final Clock clock) {
      final long deadline = clock.in(limit);
      for (; ; ) {
        final long left = TimeUnit.NANOSECONDS.toMillis(clock.left(deadline));
        if (left <= 0) {
          return false;
        }
        try {
          attempt.run(Math.toIntExact(left)); // 0 would be no limit.
          return true;
        } catch (final NoRouteToHostException e) {
          if (!pause(left, clock)) {
            return true;
          }
        } catch (final ConnectException | SocketTimeoutException e) {
          return false;
        } catch (final IOException e) {
          return true;
        }
      }
    }

    /** False if interrupted. */
    private static boolean pause(final long mostMillis, final Clock clock) {
      try {
        clock.sleep(Duration.ofMillis(Math.min(mostMillis, PAUSE.toMillis())));
        return true;
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
  }
}
