package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.spark.TlsKeys;
import io.zerohop.spark.control.ControlConnector.ControlSecurity;
import io.zerohop.spark.control.OpenChannels.ControlLimits;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nobody on the way reads questions and answers, or changes them unnoticed. */
class ControlEncryptionTest extends ControlChannelFixture {
  @Test
  void questionsGoUnderTlsWhereSparksDo(@TempDir final Path folder) throws Exception {
    final SparkConf conf = Channels.conf();
    TlsKeys.settings(folder).forEach(conf::set);
    final SparkControlChannel channel =
        channels.open(conf, 1, service, Channels.LIMIT, ControlLimits.DEFAULT);
    try (ControlLink link = connect(channel, channel)) {
      assertThat(answer(link, AskedService.ECHO, "over TLS")).isEqualTo("over TLS");
      final ByteBuffer large =
          get(link.ask(AskedService.question(AskedService.LARGE, String.valueOf(8 << 20))));
      assertThat(large.remaining()).isEqualTo(8 << 20);
    }
    final SparkControlChannel plain = channels.open(service);
    assertThat(reason(() -> connect(plain, channel))).isIn(Reason.CLOSED, Reason.AUTHENTICATION);
  }

  @Test
  void anAnswerThatIsChangedUnderWayIsNoAnswer() throws Exception {
    final SparkControlChannel channel = channels.open(service);
    try (FlippingProxy proxy = new FlippingProxy(Channels.HOST, channel.port());
        ControlLink link = channel.connect(Channels.HOST, proxy.port(), Channels.LIMIT)) {
      assertThat(answer(link, AskedService.ECHO, "as it was")).isEqualTo("as it was");
      proxy.flipNext();
      final CompletableFuture<ByteBuffer> changed =
          link.ask(AskedService.question(AskedService.ECHO, "something else"));
      assertThat(failure(changed)).isNotNull();
    }
  }

  @Test
  void theCipherIsTheOneThatTheUserWants() throws Exception {
    final SparkConf conf = Channels.conf().set(ControlSecurity.CIPHER, "AES/CTR/NoPadding");
    final SparkControlChannel ctr =
        channels.open(conf, 1, service, Channels.LIMIT, ControlLimits.DEFAULT);
    try (ControlLink link = connect(ctr, ctr)) {
      for (int size = 1; size < 4 << 20; size *= 3) {
        final ByteBuffer answer =
            get(link.ask(AskedService.question(AskedService.LARGE, String.valueOf(size))));
        assertThat(answer.remaining()).isEqualTo(size);
      }
    }
  }
}
