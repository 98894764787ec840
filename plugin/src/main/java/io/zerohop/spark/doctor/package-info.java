/**
 * Says why shuffles are not as fast as they could be, before an application runs and inside one:
 * {@code java -jar zerohop-spark.jar doctor} and {@link io.zerohop.spark.Doctor}. What decides at
 * run time is asked itself wherever it can be: there is no second opinion that could differ.
 *
 * <p>Classes whose names begin with {@code Spark} need Spark; no other one does.
 */
package io.zerohop.spark.doctor;
