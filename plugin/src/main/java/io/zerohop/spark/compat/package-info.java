/** Calls whose signature differs between the Spark versions that one jar serves. */
package io.zerohop.spark.compat;
