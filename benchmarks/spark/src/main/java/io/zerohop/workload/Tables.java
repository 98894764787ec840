package io.zerohop.workload;

import java.util.function.BiConsumer;
import org.apache.spark.sql.SparkSession;

/** A benchmark's tables: who writes them, and how SQL gets to know them. */
public enum Tables {
  /** Those of TPC-H. */
  TPCH(TpchData.class, TpchData::register),

  /** Those of TPC-DS. */
  TPCDS(TpcdsData.class, TpcdsData::register);

  private final Class<?> generator;
  private final BiConsumer<SparkSession, String> register;

  Tables(final Class<?> generator, final BiConsumer<SparkSession, String> register) {
    this.generator = generator;
    this.register = register;
  }

  /** The application that writes them; its arguments are a folder and a scale factor. */
  String generator() {
    return generator.getName();
  }

  /** Makes a folder's files known under the tables' names. */
  void register(final SparkSession spark, final String folder) {
    register.accept(spark, folder);
  }
}
