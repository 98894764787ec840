package io.zerohop.gpu;

import java.util.List;
import org.apache.spark.sql.Row;

/**
 * A query that ran to its end.
 *
 * @param rows what it returned
 * @param seconds from planning until the last row was at the driver
 * @param exchanges the shuffles of its plan
 */
record QueryRun(List<Row> rows, double seconds, ExchangeCount exchanges) {}
