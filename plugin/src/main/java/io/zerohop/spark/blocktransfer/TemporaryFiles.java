package io.zerohop.spark.blocktransfer;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.shuffle.DownloadFile;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.SimpleDownloadFile;
import org.apache.spark.network.util.TransportConf;

/**
 * Temporary files into which one request for a large block is received. The bytes are as the
 * owner's file has them, so they are encrypted where that is asked for. Thread safe.
 */
final class TemporaryFiles implements DownloadFileManager {
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
