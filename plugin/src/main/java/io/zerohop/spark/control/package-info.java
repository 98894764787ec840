/**
 * Questions and answers between the executors of an application, over Spark's own transport.
 *
 * <pre>
 *   asker                                             answerer
 *   SparkControlLink                                  SparkControlChannel, spark.zerohop.port
 *     |  TCP, and TLS where spark.ssl.rpc says so       |  places left? one frame of a stranger
 *     |-- challenge: a public key under the secret ---->|  secret right?
 *     |&lt;-- response: a public key under the secret -----|
 *     |  secret right?   both: session key, AES         |
 *     |== question ====================================>|  ControlService.asked(link, ...)
 *     |&lt;================= answer, or a refusal's words =|
 *     |  end of the connection                          |  ControlService.disconnected(link)
 * </pre>
 *
 * <p>The proof is Spark's: {@code AuthClientBootstrap} and {@code AuthServerBootstrap}, always with
 * the key agreement of {@code spark.network.crypto} and never with SASL, whatever the application
 * has set for its own connections. The key is derived from the application's secret for this one
 * use. What follows is encrypted by {@code spark.network.crypto.cipher}, and by AES/GCM where the
 * user has not set it and Spark is 4.1 or later, so that a bit that is flipped under way breaks the
 * connection. Before, it is Spark's default: AES/CTR keeps others from reading but not from
 * flipping bits, which TLS does.
 *
 * <p>Spark's transport believes length fields, takes frames of up to 2 GB from anybody and has one
 * handler for what comes before and with the proof. So two handlers of ours stand in each
 * connection: {@link io.zerohop.spark.control.OpenChannels.StrangerGuard} counts bytes before
 * frames are gathered, {@link io.zerohop.spark.control.OpenChannels.FrameCheck} looks at frames
 * before they are decoded. Either closes the connection at the first thing that the protocol does
 * not know. A connection that has proved nothing within the limit is closed as well, and only so
 * many may be unproven. The asking end answers nothing, proven or not.
 */
package io.zerohop.spark.control;
