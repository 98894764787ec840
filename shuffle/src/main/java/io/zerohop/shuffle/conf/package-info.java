/** What users configure: one table of keys, read once and handed down whole. */
package io.zerohop.shuffle.conf;
