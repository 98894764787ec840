/** The codes of warnings, errors and reasons; docs/runbook.md explains them. */
package io.zerohop.spark.log;
