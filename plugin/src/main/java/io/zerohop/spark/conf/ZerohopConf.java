package io.zerohop.spark.conf;

import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.conf.Keys;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/** Reads {@link Config} from Spark's configuration. */
public final class ZerohopConf {
  /** What users set {@code spark.shuffle.manager} to. */
  public static final String SHUFFLE_MANAGER = "io.zerohop.spark.ZerohopShuffleManager";

  private ZerohopConf() {}

  /**
   * Returns what is configured.
   *
   * @throws IllegalArgumentException naming the key, its text and what is expected
   */
  public static Config of(final SparkConf conf) {
    return Config.read(key -> conf.get(key, null));
  }

  /** Returns the keys under {@link Keys#PREFIX} that nobody declared, most likely misspelt. */
  public static List<String> unknown(final SparkConf conf) {
    return Arrays.stream(conf.getAllWithPrefix(Keys.PREFIX))
        .map(Tuple2::_1)
        .map(name -> Keys.PREFIX + name)
        .filter(key -> !Keys.isKnown(key))
        .sorted()
        .toList();
  }

  /** Returns the keys that are set by a name that they had before, each with the one it has now. */
  public static List<String> renamed(final SparkConf conf) {
    return Keys.renamed().entrySet().stream()
        .filter(names -> conf.contains(names.getKey()))
        .map(names -> names.getKey() + " (now " + names.getValue() + ")")
        .toList();
  }
}
