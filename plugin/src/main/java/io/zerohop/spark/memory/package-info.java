/** How much memory shuffle blocks may take beside all that is promised to others. */
package io.zerohop.spark.memory;
