package io.zerohop.spark.keeper;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.keeper.Keeper;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The keeper's process. An executor starts it and says by its standard input what it is to do: the
 * secret is neither in its arguments nor in its environment.
 */
public final class KeeperProcess {
  private static final Logger LOG = LoggerFactory.getLogger(KeeperProcess.class);
  private static final Duration GRACE = Duration.ofSeconds(10);
  private static final int PROBE_MILLIS = 1_000;
  private static final int MAX_SECRET_BYTES = 1 << 10;

  private KeeperProcess() {}

  /**
   * The orders for a keeper.
   *
   * @param base configured folder of sockets; empty for the default
   * @param bytes most that it holds of executors that have ended
   * @param aloneMillis longest time without an executor
   */
  record Orders(
      String base,
      String appId,
      byte[] secret,
      String driverHost,
      int driverPort,
      long bytes,
      long aloneMillis) {
    void write(final DataOutputStream out) throws IOException {
      out.writeUTF(base);
      out.writeUTF(appId);
      out.writeInt(secret.length);
      out.write(secret);
      out.writeUTF(driverHost);
      out.writeInt(driverPort);
      out.writeLong(bytes);
      out.writeLong(aloneMillis);
      out.flush();
    }

    static Orders read(final DataInputStream in) throws IOException {
      final String base = in.readUTF();
      final String appId = in.readUTF();
      final int length = in.readInt();
      if (length < 0 || length > MAX_SECRET_BYTES) {
        throw new IOException("a secret of " + length + " bytes");
      }
      final byte[] secret = in.readNBytes(length);
      return new Orders(
          base, appId, secret, in.readUTF(), in.readInt(), in.readLong(), in.readLong());
    }

    boolean driverLives() {
      try (Socket socket = new Socket()) {
        socket.connect(new InetSocketAddress(driverHost, driverPort), PROBE_MILLIS);
        return true;
      } catch (final IOException e) {
        LOG.debug("the driver does not answer", e);
        return false;
      }
    }
  }

  /** Keeps until nobody needs it. Ends with 0 also where another keeper runs. */
  public static void main(final String[] arguments) throws IOException, InterruptedException {
    final Orders orders;
    try (DataInputStream in = new DataInputStream(System.in)) {
      orders = Orders.read(in);
    }
    final Keeper.Limits limits =
        new Keeper.Limits(orders.bytes(), Duration.ofMillis(orders.aloneMillis()), GRACE);
    final Keeper keeper;
    try {
      keeper =
          Keeper.start(
              ShuffleNode.socketFolder(
                  orders.base().isEmpty() ? null : Path.of(orders.base()),
                  orders.appId(),
                  orders.secret()),
              orders.secret(),
              limits,
              orders::driverLives,
              Clock.system());
    } catch (final ZerohopException e) {
      LOG.info("this keeper ends, as another one runs or none can: {}", e.getMessage());
      return;
    }
    LOG.info("keeping the map outputs of {}", orders.appId());
    try (keeper) {
      keeper.run();
    }
    LOG.info("nobody needs this keeper any more");
  }
}
