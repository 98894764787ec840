/**
 * Start and end of what an executor has of Zerohop: its node, files, metrics and ties to others.
 */
package io.zerohop.spark.executor;
