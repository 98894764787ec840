/**
 * The tab GPU Shuffle in Spark's UI: reports of executors become events of the application, events
 * become a bounded model, and the model becomes a page, live and in the history server.
 */
package io.zerohop.spark.ui;
