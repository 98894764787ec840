/** Zerohop's keys, and what an application's configuration as a whole decides. */
package io.zerohop.spark.conf;
