/** Row checksums of GPU map outputs, and when Spark asks for them. */
package io.zerohop.spark.rapids.checksum;
