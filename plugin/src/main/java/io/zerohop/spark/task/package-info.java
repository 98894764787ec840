/** What Spark tells a task of blocks, and what a task tells Spark of failures. */
package io.zerohop.spark.task;
