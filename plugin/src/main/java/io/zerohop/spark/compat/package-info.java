/** What differs between the Spark versions that one jar serves, and between the jar's own. */
package io.zerohop.spark.compat;
