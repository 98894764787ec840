/** Map outputs as files of Spark's: those that found no room in memory, or that left it. */
package io.zerohop.spark.spillfiles;
