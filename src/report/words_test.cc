#include "report/words.h"

#include <gtest/gtest.h>

#include <limits>

namespace plumbline::report {
namespace {

TEST(Words, QuantitiesChooseAUnitThatKeepsThreeDigits) {
  EXPECT_EQ(quantity(14.2e6, "B"), "14.2 MB");
  EXPECT_EQ(quantity(999, "B"), "999 B");
  EXPECT_EQ(quantity(0.0183, "s"), "18.3 ms");
  EXPECT_EQ(quantity(0, "s"), "0 s");
  EXPECT_EQ(quantity(0.0002, "ratio"), "0.02 %");
  EXPECT_EQ(quantity(0.001, "ratio"), "0.10 %");
  EXPECT_EQ(quantity(std::numeric_limits<double>::quiet_NaN(), "B"), "unknown");
  EXPECT_EQ(quantity(std::numeric_limits<double>::infinity(), "s"), "unknown");
}

TEST(Words, FiguresHaveFourDigitsInTheUnitThatKeepsThem) {
  EXPECT_EQ(figure(21.3846e-6, "J"), "21.38 µJ");
  EXPECT_EQ(figure(2e-3, "J"), "2.000 mJ");
  EXPECT_EQ(figure(0.99996e-3, "J"), "1.000 mJ");
  EXPECT_EQ(figure(0.9994e-3, "J"), "999.4 µJ");
  EXPECT_EQ(figure(4.6e-12, "J"), "4.600 pJ");
  EXPECT_EQ(figure(0.0123, "s"), "12.30 ms");
  EXPECT_EQ(figure(3, "B"), "3 B");
  EXPECT_EQ(figure(2.5, "B"), "2.500 B");
  EXPECT_EQ(figure(440860, "B"), "440.9 kB");
  EXPECT_EQ(figure(0, "J"), "0 J");
  EXPECT_EQ(figure(2003.4, "1/s"), "2003 /s");
  EXPECT_EQ(figure(0.001, "ratio"), "0.1000 %");
  EXPECT_EQ(figure(-0.0123, "s"), "-12.30 ms");
  EXPECT_EQ(figure(std::numeric_limits<double>::quiet_NaN(), "J"), "unknown");
}

TEST(Words, BothEndsOfAChangeShareTheUnitOfTheLarger) {
  EXPECT_EQ(from_to(0.9e6, 20.1e6, "B"), "0.90 → 20.1 MB");
  EXPECT_EQ(signed_quantity(5.9e6, "B"), "+5.90 MB");
  EXPECT_EQ(signed_quantity(-5.9e6, "B"), "-5.90 MB");
}

TEST(Words, PercentagesNeverShowMinusZero) {
  EXPECT_EQ(signed_percent(41.2), "+41 %");
  EXPECT_EQ(signed_percent(7759.4), "+7,759 %");
  EXPECT_EQ(signed_percent(-0.01), "0.0 %");
  EXPECT_EQ(signed_percent(0.01), "0.0 %");
  EXPECT_EQ(interval_percent(39.1, 43.4), "+39 to +43 %");
  EXPECT_EQ(interval_percent(-1, std::numeric_limits<double>::infinity()), "unknown");
}

TEST(Words, MetricsReadAsWords) {
  EXPECT_EQ(metric_words("off_array_weight_bytes_per_inference"), "off-array weight bytes per inference");
  EXPECT_EQ(metric_words("latency_p95"), "latency, p95");
  EXPECT_EQ(count(1234567), "1,234,567");
  EXPECT_EQ(count(-1000), "-1,000");
  EXPECT_EQ(count(12), "12");
}

TEST(Words, HostileTextLosesItsPower) {
  EXPECT_EQ(escape_html("<script>alert(\"x\")&'</script>"),
            "&lt;script&gt;alert(&quot;x&quot;)&amp;&#39;&lt;/script&gt;");
  EXPECT_EQ(escape_html("a\x1b[31m\xff"), "a [31m\xEF\xBF\xBD");
  EXPECT_EQ(one_line("a\x1b]0;evil\x07\nb\xc2\x9b"
                     "31m"),
            "a ]0;evil  b 31m");
  EXPECT_EQ(json_text("a\"\\\n\xff\xed\xa0\x80"),
            "\"a\\\"\\\\\\u000a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace plumbline::report
