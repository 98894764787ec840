/** What the driver does for executors: the secret, and which shuffles live. */
package io.zerohop.spark.driver;
