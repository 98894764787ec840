package io.zerohop.gpu;

import io.zerohop.workload.Answer;
import io.zerohop.workload.PlanShape;

/**
 * A query that ran to its end.
 *
 * @param answer what it returned
 * @param seconds from planning until the last row was at the driver
 * @param exchanges the shuffles of its plan
 * @param plan what adaptive execution made of it in the end
 */
record QueryRun(Answer answer, double seconds, ExchangeCount exchanges, PlanShape plan) {}
